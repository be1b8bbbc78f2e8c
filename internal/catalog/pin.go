package catalog

// Pins say which content files must have. They are asked from many goroutines.
type Pins interface {
	// Check returns why a file of a name in its source, with tools of these paths, may not have a digest, or nil. The digest is a module's, or
	// that of what a script is made into.
	Check(name string, paths []string, digest string) error
}

// A PinError means that a file does not have the content that it is pinned to. Its text is Err's.
type PinError struct {
	Err error
	// Paths are those of the file's tools.
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

// holdPins stops serving what may be served no longer. It does not wait for another version: no other content is ever called.
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
