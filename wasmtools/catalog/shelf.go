package catalog

import (
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/precedence"
)

// A shelf holds the files of the directory, which of their modules are served, and which wait because another file has
// their paths. It is owned by one goroutine.
type shelf struct {
	files      map[string]*file    // by path
	operations map[string]claim    // by operation id; different ids mean different paths, too
	released   map[string]struct{} // operation ids that somebody had when settle was called last
	waiting    []*file             // those with a waiting module, the first to come first
	outgoing   []*module           // no longer served, to be closed once the table has let go of them
	// starting tells that files of the first scan are still coming in. Until all have, one of them takes a path from
	// another that comes after it, so that who has it in the end depends on no race.
	starting bool
	turn     func(path string) int // of the files of the first scan, by the precedence at the start
	before   precedence.Precedence // as it was on disk at the start, and as it was noted there last
}

// A file is one .wasm file.
type file struct {
	path     string
	observed fs.FileInfo // as the last scan saw it
	appeared time.Time   // when a scan saw it first, of those after the start
	since    time.Time   // of the first scan that saw it so
	read     fs.FileInfo // the version that was loaded or refused last; nil: what is there must be read
	tried    fs.FileInfo // the version of the last load
	loading  *load       // under way; nil: none is
	awaited  bool        // of the first scan, and what comes of it is not known
	delayed  bool        // awaited, and that takes long
	serving  *module     // nil: none
	waiting  *module     // loaded well, but refused for a conflict; nil: none
	refused  error       // why what is there is not served; nil: it is
}

// A claim is a tool that is served, and whose.
type claim struct {
	file *file // nil for a tool of the program, which keeps its path
	tool *wasmtools.Tool
}

// newShelf returns a shelf without files, beside tools of the program.
func newShelf(own []*wasmtools.Tool) *shelf {
	s := &shelf{files: map[string]*file{}, operations: map[string]claim{}, released: map[string]struct{}{}, turn: precedence.Precedence(nil).Turns(nil)}
	for _, t := range own {
		s.operations[t.OperationID()] = claim{nil, t}
	}
	return s
}

// at returns the file at path, a new one where there is none.
func (s *shelf) at(path string) *file {
	f, ok := s.files[path]
	if !ok {
		f = &file{path: path}
		s.files[path] = f
	}
	return f
}

// offer has a new version of a file served in the place of the old, if every path it wants is free; otherwise the old
// one stays, and the new one waits, refused. It reports whether the new one is served.
func (s *shelf) offer(f *file, m *module) bool {
	s.stopWaiting(f)
	displaced, err := s.conflict(f, m)
	if err != nil {
		f.waiting, f.refused = m, err
		s.waiting = append(s.waiting, f)
		return false
	}
	for _, other := range displaced {
		s.displace(other)
	}
	s.withdraw(f)
	f.serving, f.refused = m, nil
	s.claim(f)
	return true
}

// conflict returns why a module of f can't be served beside what is there, or the files that have to make room.
func (s *shelf) conflict(f *file, m *module) (displaced []*file, err error) {
	for _, t := range m.Tools() {
		c, ok := s.operations[t.OperationID()]
		switch {
		case !ok || c.file == f || slices.Contains(displaced, c.file):
		case s.starting && c.file != nil && s.precedes(f.path, m, c.file.path, c.file.serving):
			displaced = append(displaced, c.file)
		default:
			return nil, wasmtools.Conflict(c.tool, t)
		}
	}
	return displaced, nil
}

// precedes tells the order of the modules of the first scan, a total one: first by their turns, so that who kept a path from another
// before the start keeps it, then those that say themselves what they are come before those that are run for that, and then it is that of the paths.
func (s *shelf) precedes(path string, m *module, otherPath string, other *module) bool {
	turn, otherTurn := s.turn(path), s.turn(otherPath)
	switch {
	case !m.first || !other.first:
		return false
	case turn != otherTurn:
		return turn < otherTurn
	case m.described != other.described:
		return other.described
	}
	return path < otherPath
}

// precedence returns which files wait for which.
func (s *shelf) precedence() precedence.Precedence {
	p := precedence.Precedence{}
	for _, f := range s.waiting {
		var holders []string
		for _, t := range f.waiting.Tools() {
			if c, ok := s.operations[t.OperationID()]; ok && c.file != nil && c.file != f {
				holders = append(holders, c.file.path)
			}
		}
		slices.Sort(holders)
		if holders = slices.Compact(holders); holders != nil {
			p[f.path] = holders
		}
	}
	return p
}

// displace has the module that a file serves wait, for the sake of one that comes before it.
func (s *shelf) displace(f *file) {
	m := f.serving
	s.release(f)
	if f.waiting != nil { // a newer version, which waits already
		s.outgoing = append(s.outgoing, m)
		return
	}
	f.waiting = m
	s.waiting = append(s.waiting, f)
}

// claim notes what the file serves.
func (s *shelf) claim(f *file) {
	for _, t := range f.serving.Tools() {
		s.operations[t.OperationID()] = claim{f, t}
	}
}

// withdraw ends the serving of a file's module, if there is one.
func (s *shelf) withdraw(f *file) {
	if f.serving == nil {
		return
	}
	s.outgoing = append(s.outgoing, f.serving)
	s.release(f)
}

// release frees the paths of what a file serves.
func (s *shelf) release(f *file) {
	for _, t := range f.serving.Tools() {
		delete(s.operations, t.OperationID())
		s.released[t.OperationID()] = struct{}{}
	}
	f.serving = nil
}

// stopWaiting drops the version of a file that waits, if there is one.
func (s *shelf) stopWaiting(f *file) {
	if f.waiting == nil {
		return
	}
	f.waiting.Close() // no table ever had it
	f.waiting = nil
	s.waiting = slices.DeleteFunc(s.waiting, func(w *file) bool { return w == f })
}

// remove takes a file off the shelf.
func (s *shelf) remove(f *file) {
	s.stopWaiting(f)
	s.withdraw(f)
	delete(s.files, f.path)
}

// settle lets those that wait take what has become free since the last time, in the order of their coming, and returns them. It
// says of those that wanted it, too, what they wait for by now. To look at all others is not needed, and there may be thousands.
func (s *shelf) settle() (taken []*file) {
	for i := 0; len(s.released) > 0 && i < len(s.waiting); {
		f, m := s.waiting[i], s.waiting[i].waiting
		i++
		if !s.wantsReleased(m) {
			continue
		}
		if _, f.refused = s.conflict(f, m); f.refused != nil {
			continue
		}
		s.waiting = slices.Delete(s.waiting, i-1, i)
		f.waiting = nil
		s.offer(f, m) // which may free a path in turn
		taken = append(taken, f)
		i = 0
	}
	clear(s.released)
	return taken
}

// wantsReleased reports whether a module wants something that was released since settle was called last.
func (s *shelf) wantsReleased(m *module) bool {
	return slices.ContainsFunc(m.Tools(), func(t *wasmtools.Tool) bool {
		_, ok := s.released[t.OperationID()]
		return ok
	})
}

// limit gives the modules of a file new limits. One that can't run within them is neither served nor waits any more; the error
// is why.
func (s *shelf) limit(f *file, limits func(path string) sandbox.Limits) (err error) {
	if f.waiting != nil {
		if err = f.waiting.limit(limits); err != nil {
			s.stopWaiting(f)
		}
	}
	if f.serving != nil {
		if served := f.serving.limit(limits); served != nil {
			s.withdraw(f)
			return served
		}
		s.claim(f)
	}
	return err
}

// served returns all tools that are served.
func (s *shelf) served() []*wasmtools.Tool {
	tools := make([]*wasmtools.Tool, 0, len(s.operations))
	for _, c := range s.operations {
		tools = append(tools, c.tool)
	}
	return tools
}

// refused returns the files that are not served as they are, by path.
func (s *shelf) refused() []*file {
	var files []*file
	for _, f := range s.files {
		if f.refused != nil {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	return files
}

// closeOutgoing closes what the table has let go of.
func (s *shelf) closeOutgoing() {
	for _, m := range s.outgoing {
		m.Close()
	}
	s.outgoing = nil
}

// close closes all modules.
func (s *shelf) close() {
	for _, f := range s.files {
		s.remove(f)
	}
	s.closeOutgoing()
}
