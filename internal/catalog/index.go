package catalog

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An index holds the files of the sources, and knows which of their modules are served and which wait because another file has their paths. One
// goroutine owns it.
type index struct {
	files      map[string]*file    // by key
	operations map[string]claim    // the served tools by operation id; two paths never have the same id
	tools      toolList            // of operations
	released   map[string]struct{} // operation ids that have been released since the last call of promote
	waiting    []*file             // the files with a waiting module, the oldest first
	outgoing   []*module           // modules that are no longer served, to be closed once the table has let go of them
	freed      bool                // a module was closed, so that there may be room for others
	edits      atomic.Uint64       // how often a file has come or gone, or what is served of one has changed
	// starting means that files of the first listing are still being read. Until all have been, a file takes a path from another one that comes later
	// in the order, so that the result does not depend on a race.
	starting bool
	turn     func(key string) int  // the turn of each file of the first listings, by the precedence at the start
	noted    precedence.Precedence // which file is known to wait for which
	agreeing bool                  // a file gives way to the one that it is noted to wait for
	keepers  map[string][]*file    // maps the key of a file that is not known yet to the files that wait until it is known
	isAway   func(key string) bool // reports whether the files of a key's source are still unknown
}

// A file is one .wasm file.
type file struct {
	key      string
	from     *feed
	name     string    // the file's name in its source
	listed   Entry     // its entry in the last listing
	appeared time.Time // when a listing first had it, unless it was there at the start
	changed  time.Time // when a listing first had a version that is neither served nor refused yet; zero if there is none, or if the start waits for it
	read     string    // the version that was loaded or refused last; "" means that the listed version must be read
	retry    time.Time // when that version is read again; zero means never
	// overtaken is the time since which every load was overtaken by a change; zero means that the last load was not.
	overtaken time.Time
	passing   int       // how often that version could not be loaded through no fault of its own
	loading   *load     // the load that is under way, or nil
	awaited   bool      // the start waits for it
	slow      bool      // the start waits for it, and it takes long
	serving   *module   // nil: none
	since     time.Time // when the module serving began to be served
	waiting   *module   // a good version that is refused because of a conflict, or nil
	refused   error     // why the newest version is not served, or nil if it is

	refusedSince time.Time
}

// refuse notes why the newest version is not served, or nil if it is. It reports whether that has changed.
func (f *file) refuse(err error) bool {
	if f.refused == nil && err == nil || f.refused != nil && err != nil && f.refused.Error() == err.Error() {
		return false
	}
	f.refused, f.refusedSince = err, time.Now()
	return true
}

// A claim is a tool that is served, and its file.
type claim struct {
	file *file // nil if the tool belongs to the program, which keeps its path
	tool *wasmtools.Tool
}

// known reports whether a version of the file was read or refused.
func (f *file) known() bool { return f.read != "" || f.refused != nil }

// newIndex returns an index of tools of the program, and no files.
func newIndex(own []*wasmtools.Tool) *index {
	x := &index{tools: newToolList(own), files: map[string]*file{}, operations: map[string]claim{}, released: map[string]struct{}{}, keepers: map[string][]*file{}, turn: precedence.Precedence(nil).Turns(nil), isAway: func(string) bool { return false }}
	for _, t := range own {
		x.operations[t.OperationID()] = claim{nil, t}
	}
	return x
}

// at returns the file of a key. It adds one if there is none.
func (x *index) at(key string) *file {
	f, ok := x.files[key]
	if !ok {
		f = &file{key: key}
		x.files[key] = f
		x.edits.Add(1)
	}
	return f
}

// place returns where a file lies, for messages.
func (f *file) place() string { return f.from.place(f.name) }

// offer serves a new version of a file in place of the old one, if all of its paths are free. Otherwise the old version stays, and the new one waits.
// offer reports whether the new one is served.
func (x *index) offer(f *file, m *module) bool {
	x.stopWaiting(f)
	displaced, err := x.conflict(f, m)
	if err != nil {
		f.waiting = m
		f.refuse(err)
		x.waiting = append(x.waiting, f)
		return false
	}
	for _, other := range displaced {
		x.displace(other)
	}
	x.withdraw(f)
	f.serving, f.since = m, time.Now()
	f.refuse(nil)
	x.claim(f)
	return true
}

// conflict returns the files that have to give up a path to a module of f, or why the module can't be served.
func (x *index) conflict(f *file, m *module) (displaced []*file, err error) {
	if keeper, ok := x.keeper(f); ok {
		x.keepers[keeper] = append(x.keepers[keeper], f)
		return nil, fmt.Errorf("%s had one of this file's paths first, and has not been read yet", nameIn(keeper))
	}
	for _, t := range m.Tools() {
		c, ok := x.operations[t.OperationID()]
		switch {
		case !ok || c.file == f || slices.Contains(displaced, c.file):
		case x.starting && c.file != nil && x.precedes(f.key, m, c.file.key, c.file.serving), x.agreeing && c.file != nil && x.noted.Has(c.file.key, f.key):
			displaced = append(displaced, c.file)
		default:
			return nil, wasmtools.Conflict(c.tool, t)
		}
	}
	return displaced, nil
}

// keeper returns the key of the file that f is noted to wait for, if that file has not been read yet.
func (x *index) keeper(f *file) (key string, ok bool) {
	for _, key := range x.noted[f.key] {
		if keeper, ok := x.files[key]; ok && !keeper.known() || !ok && x.isAway(key) {
			return key, true
		}
	}
	return "", false
}

// endWait makes promote look at the files that wait for this one's content.
func (x *index) endWait(key string) {
	for _, f := range x.keepers[key] {
		if f.waiting != nil {
			x.releaseAll(f.waiting)
		}
	}
	delete(x.keepers, key)
}

// precedes reports whether a module of the first listing comes before another. The order is total. It is by turn first, so that a file that had a
// path before the start keeps it. Then modules with a manifest section come before those that are run. Then the order is by key.
func (x *index) precedes(key string, m *module, otherKey string, other *module) bool {
	turn, otherTurn := x.turn(key), x.turn(otherKey)
	switch {
	case !m.first || !other.first:
		return false
	case turn != otherTurn:
		return turn < otherTurn
	case m.described != other.described:
		return other.described
	}
	return key < otherKey
}

// precedence returns which files wait for which.
func (x *index) precedence() precedence.Precedence {
	p := precedence.Precedence{}
	for _, f := range x.waiting {
		var holders []string
		for _, t := range f.waiting.Tools() {
			if c, ok := x.operations[t.OperationID()]; ok && c.file != nil && c.file != f {
				holders = append(holders, c.file.key)
			}
		}
		if keeper, ok := x.keeper(f); ok {
			holders = append(holders, keeper)
		}
		slices.Sort(holders)
		if holders = slices.Compact(holders); holders != nil {
			p[f.key] = holders
		}
	}
	return p
}

// agree serves the waiting files that should have their paths according to what is noted. It returns the files that are newly served.
func (x *index) agree() (taken []*file) {
	for key, holders := range x.noted {
		if f := x.files[key]; f == nil || f.serving == nil {
			continue
		}
		for _, holder := range holders {
			if f := x.files[holder]; f != nil && f.waiting != nil {
				x.releaseAll(f.waiting)
			}
		}
	}
	x.agreeing = true
	defer func() { x.agreeing = false }()
	return x.promote()
}

// displace stops serving a file's module and lets it wait, because another file comes before it.
func (x *index) displace(f *file) {
	m := f.serving
	x.release(f)
	if f.waiting != nil { // the waiting module is a newer version
		x.outgoing = append(x.outgoing, m)
		return
	}
	f.waiting, m.shown = m, true
	x.waiting = append(x.waiting, f)
}

// claim takes the paths of what a file serves.
func (x *index) claim(f *file) {
	x.edits.Add(1)
	for _, t := range f.serving.Tools() {
		id := t.OperationID()
		if before, ok := x.operations[id]; ok {
			x.tools.remove(before.tool)
		}
		x.operations[id] = claim{f, t}
		x.tools.add(t)
	}
}

// withdraw stops serving a file's module, if it has one.
func (x *index) withdraw(f *file) {
	if f.serving == nil {
		return
	}
	x.outgoing = append(x.outgoing, f.serving)
	x.release(f)
}

// release frees the paths of what a file serves.
func (x *index) release(f *file) {
	x.edits.Add(1)
	for _, t := range f.serving.Tools() {
		id := t.OperationID()
		x.tools.remove(x.operations[id].tool)
		delete(x.operations, id)
	}
	x.releaseAll(f.serving)
	f.serving = nil
}

// releaseAll makes promote look at the files that want one of a module's paths.
func (x *index) releaseAll(m *module) {
	for _, t := range m.Tools() {
		x.released[t.OperationID()] = struct{}{}
	}
}

// stopWaiting closes the module of a file that waits, if there is one.
func (x *index) stopWaiting(f *file) {
	if f.waiting == nil {
		return
	}
	if f.waiting.shown {
		x.outgoing = append(x.outgoing, f.waiting)
	} else {
		f.waiting.Close()
		x.freed = true
	}
	f.waiting = nil
	x.waiting = slices.DeleteFunc(x.waiting, func(w *file) bool { return w == f })
}

// remove removes a file.
func (x *index) remove(f *file) {
	x.stopWaiting(f)
	x.withdraw(f)
	delete(x.files, f.key)
	x.edits.Add(1)
	x.endWait(f.key)
}

// promote serves the waiting files that want a path which was released since the last call, the oldest first, and returns them. For those that still
// wait, it updates the reason. It looks at no other files, since thousands may wait.
func (x *index) promote() (taken []*file) {
	for i := 0; len(x.released) > 0 && i < len(x.waiting); {
		f, m := x.waiting[i], x.waiting[i].waiting
		i++
		if !x.wantsReleased(m) {
			continue
		}
		_, err := x.conflict(f, m)
		f.refuse(err)
		if err != nil {
			continue
		}
		x.waiting = slices.Delete(x.waiting, i-1, i)
		f.waiting = nil
		x.offer(f, m) // this may free a path in turn
		taken = append(taken, f)
		i = 0
	}
	clear(x.released)
	return taken
}

// wantsReleased reports whether a module wants a path that was released since the last call.
func (x *index) wantsReleased(m *module) bool {
	return slices.ContainsFunc(m.Tools(), func(t *wasmtools.Tool) bool {
		_, ok := x.released[t.OperationID()]
		return ok
	})
}

// build gives the modules of a file new limits and grants. A module that can't run within them is withdrawn or stops waiting, and the error says why.
func (x *index) build(f *file, limitsFor func(path string) limits.Limits, granter toolfile.Granter) (err error) {
	if f.waiting != nil {
		if err = f.waiting.build(limitsFor, granter); err != nil {
			x.stopWaiting(f)
		}
	}
	if f.serving != nil {
		before := f.serving.Tools()
		if served := f.serving.build(limitsFor, granter); served != nil {
			x.withdraw(f)
			return served
		}
		if after := f.serving.Tools(); &before[0] != &after[0] { // a module has at least one tool
			x.claim(f)
		}
	}
	return err
}

// refused returns the files whose newest version is not served, by key.
func (x *index) refused() []*file {
	var files []*file
	for _, f := range x.files {
		if f.refused != nil {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *file) int { return strings.Compare(a.key, b.key) })
	return files
}

// closeOutgoing closes the modules that are no longer in the table.
func (x *index) closeOutgoing() {
	for _, m := range x.outgoing {
		m.Close()
		x.freed = true
	}
	x.outgoing = nil
}

// close closes all modules.
func (x *index) close() {
	for _, f := range x.files {
		x.remove(f)
	}
	x.closeOutgoing()
}
