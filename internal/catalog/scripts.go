package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/touched"
)

// A Builder makes modules of scripts. It is called from many goroutines.
type Builder interface {
	// Build returns the module of the script at a path on disk, and the paths of the files that it depends on,
	// including those that it looked for and did not find. It reads nothing that lies outside the folder root, unless that is empty. content is what
	// the script's own file has, in place of what lies there, if anything does; if nil, what lies there. It must return when ctx
	// ends. An error with a method Temporary that returns true is not the script's fault: it is built again later.
	Build(ctx context.Context, root, path string, content []byte) (module wasmbin.Made, inputs []string, err error)
}

// temporary are the errors of a Builder that may pass, and those of the system.
type temporary interface {
	error
	Temporary() bool
}

// scripts makes the modules of a source's scripts, and knows which of them have to be made again. It is safe for concurrent use.
type scripts struct {
	source    Source
	builder   Builder   // nil: the source's scripts are refused
	rollbacks Rollbacks // nil: there are none
	patience  *patience

	mu      sync.Mutex
	makings map[string]*making // by ID
	parts   map[string]Entry   // at the last listing, by ID
	around  string             // the same
	round   int                // how often one of both has changed
}

// A making is how one version of a script is made into a module. It never changes.
type making struct {
	of      string    // the version, as the source has it
	again   int       // how often it had to be made again
	since   time.Time // when that turned out; zero means never
	made    bool
	changed change // since then; if nil, nothing is known
	failed  bool
	round   int // when it was made
}

// A change reports whether something that a script was made of is another by now. names are what Listing.Changed is.
type change func(parts map[string]Entry, names map[string]bool) bool

// version returns the version that an entry has instead of its source's.
func (m *making) version() string { return fmt.Sprintf("%s%s%d", m.of, remade, m.again) }

// remade stands in the version of a script between its source's and how often it had to be made again.
const remade = "\x00"

// sourceVersion returns the version that a source has of an entry with a version.
func (e *Entry) sourceVersion() string {
	if e.Kind != Script {
		return e.Version
	}
	return e.Version[:max(0, strings.LastIndex(e.Version, remade))]
}

// stale reports whether the same script would be made into something else now.
func (m *making) stale(parts map[string]Entry, round int, names map[string]bool) bool {
	return m.made && (m.failed && m.round != round || m.changed(parts, names)) // what a broken one needs may have come
}

// take takes the parts out of a listing, and gives scripts that are to be made again another version. They have to stay as they are for
// a time then.
func (s *scripts) take(l *Listing, settle time.Duration, now time.Time) {
	parts := map[string]Entry{}
	if slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.Kind == Script || e.Kind == Part }) {
		l.Entries = slices.Clone(l.Entries) // the source may give them again
	}
	l.Entries = slices.DeleteFunc(l.Entries, func(e Entry) bool {
		switch {
		case e.Kind != Part:
			return false
		case e.Err != nil:
			l.Problems = append(slices.Clip(l.Problems), Problem{e.ID, e.Err})
		case e.Settling == 0:
			parts[e.ID] = e
		default:
			if l.Again == 0 || e.Settling < l.Again {
				l.Again = e.Settling
			}
			if before, ok := s.parts[e.ID]; ok { // which can't be opened any more: scripts wait for the new one
				parts[e.ID] = before
			}
		}
		return true
	})
	s.mu.Lock()
	if l.Around != s.around || !maps.EqualFunc(parts, s.parts, func(a, b Entry) bool { return a.Version == b.Version }) {
		s.round++
	}
	s.parts, s.around = parts, l.Around
	round, before := s.round, maps.Clone(s.makings)
	s.mu.Unlock()
	next := map[string]*making{}
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Kind != Script || e.Err != nil {
			continue
		}
		m := before[e.ID]
		switch {
		case m == nil || m.of != e.Version:
			m = &making{of: e.Version}
		case m.stale(parts, round, l.Changed): // looks at files, so without the lock
			m = &making{of: e.Version, again: m.again + 1, since: now}
		}
		if !m.since.IsZero() {
			e.Settling = max(e.Settling, m.since.Add(settle).Sub(now))
		}
		e.Version, next[e.ID] = m.version(), m
	}
	for id, m := range before {
		if _, ok := next[id]; !ok && !l.Knows(id) {
			next[id] = m
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, m := range next {
		if made := s.makings[id]; made != nil && made != before[id] && made.version() == m.version() { // meanwhile
			next[id] = made
		}
	}
	s.makings = next
}

// errNoScripts is why a script is refused where nobody can make a module of it.
var errNoScripts = errors.New("is a script, and scripts of its source are not served")

// check returns the module of a script with some content that its source does not have yet, or no longer.
func (s *scripts) check(ctx context.Context, id string, content []byte) (module wasmbin.Made, err error) {
	if s.builder == nil {
		return module, errNoScripts
	}
	if disk, ok := s.source.(Disk); ok {
		root, path := disk.Path(id)
		module, _, err = s.builder.Build(ctx, root, path, content)
		return module, err
	}
	s.mu.Lock()
	parts := s.parts
	s.mu.Unlock()
	module, _, err = s.buildElsewhere(ctx, Entry{ID: id, Kind: Script, Size: int64(len(content))}, content, parts)
	return module, err
}

// maxScript is how large a script's own file may be, in bytes: no language takes more, and it is read without being counted.
const maxScript = 16 << 20

// own returns the digest of what is taken as a script's own file, and its content if that is not what the source has.
func (s *scripts) own(ctx context.Context, e Entry) (digest string, instead []byte, err error) {
	if e.Size > maxScript {
		return "", nil, fmt.Errorf("has %d bytes; the limit for a script is %s", e.Size, text.Size(maxScript))
	}
	content, err := s.patience.read(ctx, s.source, e, nil)
	if err != nil {
		return "", nil, err
	}
	if s.rollbacks != nil {
		earlier, err := s.rollbacks.Instead(ctx, s.source.ID(), e.ID, content)
		if err != nil {
			return "", nil, err
		}
		if !bytes.Equal(earlier, content) {
			content, instead = earlier, earlier
		}
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), instead, nil
}

// make returns the module of a script, and the digest of the script's own file. Its errors are those of read.
func (s *scripts) make(ctx context.Context, e Entry) (none wasmbin.Made, digest string, err error) {
	if s.builder == nil {
		return none, "", &FileError{errNoScripts}
	}
	s.mu.Lock()
	m, parts, round := s.makings[e.ID], s.parts, s.round
	s.mu.Unlock()
	if m == nil || m.version() != e.Version {
		return none, "", ErrChanged
	}
	e.Version = m.of
	digest, instead, err := s.own(ctx, e)
	if err != nil {
		return none, "", err
	}
	module, changed, err := s.build(ctx, e, instead, parts)
	if changed == nil {
		return none, "", err
	}
	s.mu.Lock()
	if s.makings[e.ID] == m {
		s.makings[e.ID] = &making{of: m.of, again: m.again, since: m.since, made: true, changed: changed, failed: err != nil, round: round}
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		return none, "", &FileError{Err: err}
	case module.Size() > sandbox.MaxModule:
		return none, "", fmt.Errorf("becomes a module of more than %d bytes, which is the limit: leave out what it doesn't need", sandbox.MaxModule)
	}
	return module, digest, nil
}

// build builds a script, from instead if that is not nil. If err is the script's fault, changed is what making.changed is; otherwise it is nil, and
// the build is tried again.
func (s *scripts) build(ctx context.Context, e Entry, instead []byte, parts map[string]Entry) (module wasmbin.Made, changed change, err error) {
	disk, ok := s.source.(Disk)
	if !ok {
		return s.buildElsewhere(ctx, e, instead, parts)
	}
	root, path := disk.Path(e.ID)
	began := time.Now()
	module, inputs, err := s.builder.Build(ctx, root, path, instead)
	if passes(ctx, err) {
		return module, nil, passing(ctx, err)
	}
	switch f, err := s.source.Open(ctx, e.ID, e.Version); {
	case err == nil:
		f.Close()
	case errors.Is(err, ErrChanged), errors.Is(err, fs.ErrNotExist):
		return module, nil, ErrChanged
	}
	then := map[string]fs.FileInfo{} // by paths on disk; if nil, there was none
	for _, input := range inputs {
		now, statErr := os.Stat(input)
		if statErr == nil && touched.Since(now, began) {
			return module, nil, ErrChanged // after it was read, perhaps
		}
		then[input] = now
	}
	return module, func(_ map[string]Entry, names map[string]bool) bool { return otherFiles(then, names) }, err
}

// otherFiles reports whether one of some files, by their paths, is another one now. It looks only at those that end in one of some names; if nil, at all. The
// paths themselves can't be compared: an input may have been reached by another one.
func otherFiles(inputs map[string]fs.FileInfo, names map[string]bool) bool {
	for name, then := range inputs {
		if names != nil && !names[filepath.Base(name)] {
			continue
		}
		now, err := os.Stat(name)
		if err != nil {
			now = nil
		}
		if (now == nil) != (then == nil) || now != nil && !touched.Same(now, then) {
			return true
		}
	}
	return false
}

// passes reports whether a build may go better another time.
func passes(ctx context.Context, err error) bool {
	passing, ok := errors.AsType[temporary](err)
	return ctx.Err() != nil || ok && passing.Temporary() || errors.Is(err, syscall.ENOMEM)
}

// passing returns the error of a build that passes.
func passing(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return unreadable(ctx, err)
	}
	return &PassingError{Err: err}
}
