package config

// A Handle is a Config that only this program's own packages can look into: package wasmtools/config shows it to others.
type Handle struct{ config *Config }

// Handle returns a handle of the configuration.
func (c *Config) Handle() *Handle { return &Handle{c} }

// Opaque returns a handle of what [Load] or [Read] returned, or their error.
func Opaque(c *Config, err error) (*Handle, error) {
	if err != nil {
		return nil, err
	}
	return c.Handle(), nil
}

// Config returns what the handle is of. It panics if there is none: a program has made the handle by itself.
func (h *Handle) Config() *Config {
	if h == nil || h.config == nil {
		panic("config: a Config is made by Load or Parse")
	}
	return h.config
}
