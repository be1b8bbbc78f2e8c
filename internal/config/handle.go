package config

// A Handle is a Config that only this program's own packages can use. Package wasmtools/config passes it on to others.
type Handle struct{ config *Config }

// Handle returns a handle of the configuration.
func (c *Config) Handle() *Handle { return &Handle{c} }

// Opaque returns a handle for the result of [Load] or [Read], or their error.
func Opaque(c *Config, err error) (*Handle, error) {
	if err != nil {
		return nil, err
	}
	return c.Handle(), nil
}

// Config returns the configuration behind the handle. It panics if there is none: then a program has made the handle itself.
func (h *Handle) Config() *Config {
	if h == nil || h.config == nil {
		panic("config: a Config is made by Load or Parse")
	}
	return h.config
}
