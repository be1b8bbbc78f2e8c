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
	// Build returns the module of the script at a path on disk, and the paths of the files that it depends on, including those that it looked for and
	// did not find. It reads nothing outside the folder root, unless root is empty. content replaces the content of the script's own file, which then
	// need not exist; nil means that the file is read. Build must return when ctx ends. An error with a method Temporary that returns true is not the
	// script's fault: the script is built again later.
	Build(ctx context.Context, root, path string, content []byte) (module wasmbin.Made, inputs []string, err error)
}

// temporary is implemented by the passing errors of a Builder, and by errors of the system.
type temporary interface {
	error
	Temporary() bool
}

// scripts makes the modules of a source's scripts, and knows which scripts have to be made again. It is safe for concurrent use.
type scripts struct {
	source    Source
	builder   Builder   // if nil, the source's scripts are refused
	rollbacks Rollbacks // nil: there are none
	patience  *patience

	mu      sync.Mutex
	makings map[string]*making // by ID
	parts   map[string]Entry   // the parts in the last listing, by ID
	around  string             // the same
	round   int                // how often parts or around have changed
}

// A making is how one version of a script is made into a module. It never changes.
type making struct {
	of      string    // the source's version of the script
	again   int       // how often the script had to be made again
	since   time.Time // when the last need to make it again was noticed; zero means never
	made    bool
	changed change // reports changes since the script was made; nil if nothing is known
	failed  bool
	round   int // the round in which it was made
}

// A change reports whether something that a script was made of has changed. names is as in Listing.Changed.
type change func(parts map[string]Entry, names map[string]bool) bool

// version returns the version of an entry that replaces its source's version.
func (m *making) version() string { return fmt.Sprintf("%s%s%d", m.of, remade, m.again) }

// remade separates, in the version of a script, the source's version from how often the script had to be made again.
const remade = "\x00"

// sourceVersion returns the source's version from a version of an entry.
func (e *Entry) sourceVersion() string {
	if e.Kind != Script {
		return e.Version
	}
	return e.Version[:max(0, strings.LastIndex(e.Version, remade))]
}

// stale reports whether the same script would become a different module now.
func (m *making) stale(parts map[string]Entry, round int, names map[string]bool) bool {
	return m.made && (m.failed && m.round != round || m.changed(parts, names)) // the file that a broken script needs may have been added
}

// outdated reports whether the parts have changed while a script was made, so that it may have to be made again.
func (s *scripts) outdated(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.makings[id]
	return m != nil && m.made && m.round != s.round
}

// take takes the parts out of a listing, and gives a new version to scripts that have to be made again. Like other changed files, such
// scripts have to settle first.
func (s *scripts) take(l *Listing, settle time.Duration, now time.Time) {
	parts := map[string]Entry{}
	if slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.Kind == Script || e.Kind == Part }) {
		l.Entries = slices.Clone(l.Entries) // the source may return the same slice again
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
			if before, ok := s.parts[e.ID]; ok { // the old version can't be opened any more: scripts wait for the new one
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
		case m.stale(parts, round, l.Changed): // without the lock, since stale reads from disk
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

// errNoScripts is the error for a script if there is no Builder.
var errNoScripts = errors.New("is a script, and scripts of its source are not served")

// check returns the module of a script with a content that its source does not have yet, or no longer has.
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

// maxScript bounds the size of a script's own file in bytes. No language accepts more, and the file is read without reserving memory for it.
const maxScript = 16 << 20

// own returns the digest of the content that is used as a script's own file, and the content itself if it differs from the source's.
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

// make returns the module of a script, and the digest of the script's own file. It returns the same errors as read.
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

// build builds a script. If instead is not nil, it is the script's content. changed is for making.changed. If err is not the script's fault, changed is
// nil, and the build is tried again.
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
	then := map[string]fs.FileInfo{} // the files at that time, by paths on disk; nil if there was no file
	for _, input := range inputs {
		now, statErr := os.Stat(input)
		if statErr == nil && touched.Since(now, began) {
			return module, nil, ErrChanged // perhaps it changed after it was read
		}
		then[input] = now
	}
	return module, func(_ map[string]Entry, names map[string]bool) bool { return otherFiles(then, names) }, err
}

// otherFiles reports whether any of these files, by path, has changed. It looks only at the files whose base names are in names, or at all files if
// names is nil. It does not compare whole paths, since a file may have been reached by another path.
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

// passes reports whether a failed build may succeed another time.
func passes(ctx context.Context, err error) bool {
	passing, ok := errors.AsType[temporary](err)
	return ctx.Err() != nil || ok && passing.Temporary() || errors.Is(err, syscall.ENOMEM)
}

// passing returns the error for a build that may succeed later.
func passing(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return unreadable(ctx, err)
	}
	return &PassingError{Err: err}
}
