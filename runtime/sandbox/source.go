package sandbox

import (
	"bytes"
	"compress/flate"
	"io"
	"maps"
	"slices"
	"sync"
)

// A source is a module's bytes. They are compressed, to a third, once the module was compiled: they are needed again only if the
// code gets lost from the cache.
type source struct {
	bytes  []byte
	size   int // not compressed
	packed bool
	hard   bool // compressing does not make it smaller
}

// plain returns the source as it is compiled.
func (s source) plain() ([]byte, error) {
	if !s.packed {
		return s.bytes, nil
	}
	plain := make([]byte, s.size)
	_, err := io.ReadFull(flate.NewReader(bytes.NewReader(s.bytes)), plain)
	return plain, err
}

// pack returns the source compressed, or as it is where that is no larger.
func (s source) pack() source {
	if s.packed || s.hard {
		return s
	}
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(s.bytes); err != nil || w.Close() != nil || b.Len() >= s.size {
		s.hard = true
		return s
	}
	return source{bytes: bytes.Clone(b.Bytes()), size: s.size, packed: true}
}

// packers are kept because each takes a megabyte.
var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}

// packAll packs the modules whose code was in the cache when they were loaded, and bundles. A small one takes a tenth of a millisecond,
// for which the start of a server has no time.
func (e *Engine) packAll() {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.modules))
	e.mu.Unlock()
	for _, m := range all {
		if e.stop.Err() != nil {
			return
		}
		c := m.code
		c.mu.Lock()
		s, b := c.source, c.build
		due := b == nil && c.stored || b != nil && b.over()
		c.mu.Unlock()
		if due && !s.packed && !s.hard {
			s = s.pack()
			c.mu.Lock()
			if c.source = s; b != nil {
				b.source = source{}
			}
			c.mu.Unlock()
		}
		if m.bundle == nil {
			continue
		}
		m.mu.Lock()
		s = m.bundle.source
		m.mu.Unlock()
		if !s.packed && !s.hard {
			s = s.pack()
			m.mu.Lock()
			m.bundle.source = s
			m.mu.Unlock()
		}
	}
}
