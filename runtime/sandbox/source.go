package sandbox

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/account"
)

// A source is a module's bytes, or a bundle's. They are compressed, to a third, once the module was compiled, or where there is no room for
// them as they are: they are needed again only if the code gets lost from the cache. What they take is counted while somebody holds them.
type source struct {
	account *account.Account
	size    int // not compressed

	mu     sync.Mutex
	holds  int
	bytes  []byte   // not compressed, or nil
	packed [][]byte // compressed, in parts
	hard   bool     // compressing saves too little
}

// A RoomError means that a module's bytes would take more memory than those of all modules leave. They are kept as long as the module is
// loaded, because its code may get lost from the cache.
type RoomError struct {
	Needs int64 // bytes
	Limit int64 // of all together
}

// Error says what to do.
func (e *RoomError) Error() string {
	return fmt.Sprintf("to keep the module takes %s of memory, compressed, and all modules together would take more than the %s that they may: make it smaller, remove other tools, or raise server.memory",
		text.Size(e.Needs), text.Size(e.Limit))
}

// newSource returns a source that the caller holds. Bytes for which there is no room are a *RoomError; replaces is as in [Program.Keep].
func (e *Engine) newSource(content []byte, replaces bool) (*source, error) {
	s := &source{account: e.account, size: len(content), bytes: content}
	fits := func() bool { return s.take(replaces) }
	if fits() {
		return s, nil
	}
	if s.pack(); fits() {
		return s, nil
	}
	if e.packAll(true); fits() {
		return s, nil
	}
	return nil, &RoomError{s.length(), e.account.Use(account.Sources).Limit}
}

// take holds a source that nobody holds, if there is room for it.
func (s *source) take(replaces bool) bool {
	n := s.length()
	if !s.account.Take(account.Sources, n, replaces) {
		return false
	}
	s.holds = 1
	return true
}

// hold counts a hold, which release gives up. What nobody held is counted again, whether or not there is room: it exists.
func (s *source) hold() { s.change(1) }

// release gives up a hold.
func (s *source) release() { s.change(-1) }

func (s *source) change(holds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.counted()
	s.holds += holds
	s.count(s.counted() - before)
}

// length returns how many bytes the source takes.
func (s *source) length() int64 {
	n := len(s.bytes)
	for _, p := range s.packed {
		n += len(p)
	}
	return int64(n)
}

// counted returns how many of them count.
func (s *source) counted() int64 {
	if s.holds == 0 {
		return 0
	}
	return s.length()
}

func (s *source) count(n int64) {
	if n != 0 {
		s.account.Add(account.Sources, n)
	}
}

// plain returns the source as it is compiled. It must not be changed.
func (s *source) plain() ([]byte, error) {
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

// unpacked returns the source as it is compiled, or nil where it is compressed.
func (s *source) unpacked() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// pack compresses the source, unless that saves little.
func (s *source) pack() {
	s.mu.Lock()
	content, done := s.bytes, s.packed != nil || s.hard
	s.mu.Unlock()
	if done {
		return
	}
	packed, smaller := deflate(content)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packed != nil { // by somebody else meanwhile
		return
	}
	if s.hard = !smaller; s.hard {
		return
	}
	before := s.counted()
	s.bytes, s.packed = nil, packed
	s.count(s.counted() - before)
}

// deflate returns content compressed, in chunks. It gives up where that saves less than a quarter: it takes no more memory than that meanwhile.
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
		if at = end; to.size > at/4*3+chunk/2 { // the writer has some of it yet
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

// chunk is how many bytes are compressed before deflate looks at what they have become, and how large a chunk is of that.
const chunk = 128 << 10

// chunks is a buffer that never copies what it has.
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

// packAll packs the modules whose code was in the cache when they were loaded, and bundles. A small one takes a tenth of a millisecond,
// for which the start of a server has no time. Where room is needed, it packs those that are to be compiled, too.
func (e *Engine) packAll(needed bool) {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.modules))
	e.mu.Unlock()
	for _, m := range all {
		if e.stop.Err() != nil {
			return
		}
		if c := m.code; needed || c.quiet() {
			c.source.pack()
		}
		if m.bundle != nil {
			m.bundle.source.pack()
		}
	}
}

// quiet reports whether nobody is about to compile the code.
func (c *code) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.build == nil {
		return c.stored
	}
	return c.build.over()
}
