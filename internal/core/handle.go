package core

// A Handle is a Service that only this program's own packages can look into: package service shows it to others.
type Handle struct{ service *Service }

// Service returns what the handle is of.
func (h *Handle) Service() *Service { return h.service }
