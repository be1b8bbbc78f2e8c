package catalog

// Pins say which content files must have. The methods are called from many goroutines.
type Pins interface {
	// Check returns nil if a file with this name in its source, and with tools at these paths, may have this digest, and otherwise an error that says
	// why not. The digest is that of the module, or of the module that a script becomes.
	Check(name string, paths []string, digest string) error
}

// A PinError means that a file does not have the content that it is pinned to. Its text is that of Err.
type PinError struct {
	Err error
	// Paths are the paths of the file's tools.
	Paths []string
}

// Error returns the text of Err.
func (e *PinError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *PinError) Unwrap() error { return e.Err }

// pinned returns a *PinError if a module of a file may not be served.
func pinned(pins Pins, name string, digest string, paths []string) error {
	if pins == nil {
		return nil
	}
	if err := pins.Check(name, paths, digest); err != nil {
		return &PinError{Err: err, Paths: paths}
	}
	return nil
}

// holdPins stops serving modules that their pins no longer allow. It does not wait for another version, so that a content which is not pinned is
// never called.
func holdPins(r *reconciler, f *file) {
	if r.pins == nil {
		return
	}
	for _, m := range []*module{f.waiting, f.serving} {
		if m == nil {
			continue
		}
		err := pinned(r.pins, f.name, m.Digest(), m.Paths())
		if err == nil {
			continue
		}
		if m == f.serving {
			r.index.withdraw(f)
		} else {
			r.index.stopWaiting(f)
		}
		r.refuse(f, err)
	}
}
