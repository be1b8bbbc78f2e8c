package core

// A Handle is a Service that only this program's own packages can use. Package service passes it on to others.
type Handle struct{ service *Service }

// Service returns the service behind the handle.
func (h *Handle) Service() *Service { return h.service }
