package foundry

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
)

// A Source is the bytes of a module or a bundle. They are compressed to a third once the module has been compiled, or earlier if there is too little
// room: they are needed again only if the cache loses the code. Their memory is counted while somebody holds the source.
type Source struct {
	account *account.Account
	size    int // not compressed

	mu     sync.Mutex
	holds  int
	bytes  []byte   // not compressed, or nil
	packed [][]byte // compressed, in parts
	hard   bool     // compressing would save too little
}

// NewSource returns a source that nobody holds.
func NewSource(a *account.Account, content []byte) *Source {
	return &Source{account: a, size: len(content), bytes: content}
}

// Take holds a source that nobody holds, if there is room for it. An eighth of the room is reserved for sources that replace others.
func (s *Source) Take(replaces bool) bool {
	n := s.Length()
	if !s.account.Take(account.Sources, n, replaces) {
		return false
	}
	s.holds = 1
	return true
}

// Hold adds a hold, which Release gives up. Bytes that nobody held are counted again even if there is no room, because they exist.
func (s *Source) Hold() { s.change(1) }

// Release gives up a hold.
func (s *Source) Release() { s.change(-1) }

func (s *Source) change(holds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.counted()
	s.holds += holds
	s.count(s.counted() - before)
}

// Length returns how many bytes the source takes, compressed or not.
func (s *Source) Length() int64 {
	n := len(s.bytes)
	for _, p := range s.packed {
		n += len(p)
	}
	return int64(n)
}

// counted returns how many bytes are counted.
func (s *Source) counted() int64 {
	if s.holds == 0 {
		return 0
	}
	return s.Length()
}

func (s *Source) count(n int64) {
	if n != 0 {
		s.account.Add(account.Sources, n)
	}
}

// Plain returns the source uncompressed. It must not be changed.
func (s *Source) Plain() ([]byte, error) {
	s.mu.Lock()
	content, packed := s.bytes, s.packed
	s.mu.Unlock()
	if packed == nil {
		return content, nil
	}
	parts := make([]io.Reader, len(packed))
	for i, p := range packed {
		parts[i] = bytes.NewReader(p)
	}
	plain := make([]byte, s.size)
	_, err := io.ReadFull(flate.NewReader(io.MultiReader(parts...)), plain)
	return plain, err
}

// Unpacked returns the source if it is not compressed, and nil otherwise.
func (s *Source) Unpacked() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Pack compresses the source, unless that saves little.
func (s *Source) Pack() {
	s.mu.Lock()
	content, done := s.bytes, s.packed != nil || s.hard
	s.mu.Unlock()
	if done {
		return
	}
	packed, smaller := deflate(content)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packed != nil { // another caller did so meanwhile
		return
	}
	if s.hard = !smaller; s.hard {
		return
	}
	before := s.counted()
	s.bytes, s.packed = nil, packed
	s.count(s.counted() - before)
}

// deflate returns content compressed, in chunks. It gives up if that saves less than a quarter. Meanwhile it takes at most three quarters of
// content's size.
func deflate(content []byte) (packed [][]byte, smaller bool) {
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	to := chunks{each: max(64, min(chunk, len(content)))}
	w.Reset(&to)
	for at := 0; at < len(content); {
		end := min(len(content), at+chunk)
		if _, err := w.Write(content[at:end]); err != nil {
			return nil, false
		}
		if at = end; to.size > at/4*3+chunk/2 { // the writer has not written all of it yet
			return nil, false
		}
	}
	if w.Close() != nil || to.size > len(content)/4*3 {
		return nil, false
	}
	last := len(to.all) - 1
	to.all[last] = bytes.Clone(to.all[last])
	return to.all, true
}

// chunk is how many bytes are compressed between two checks of the result's size, and the size of the pieces of the result.
const chunk = 128 << 10

// chunks is a buffer that never moves what was written to it.
type chunks struct {
	each int
	all  [][]byte
	size int
}

// Write appends p.
func (c *chunks) Write(p []byte) (int, error) {
	c.size += len(p)
	for rest := p; len(rest) > 0; {
		last := len(c.all) - 1
		if last < 0 || len(c.all[last]) == cap(c.all[last]) {
			c.all = append(c.all, make([]byte, 0, c.each))
			last++
		}
		n := min(len(rest), cap(c.all[last])-len(c.all[last]))
		c.all[last] = append(c.all[last], rest[:n]...)
		rest = rest[n:]
	}
	return len(p), nil
}

// packers are kept because each takes a megabyte.
var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}
