package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Rollbacks know which files were rolled back. The methods are called from many goroutines.
type Rollbacks interface {
	// Instead returns what to load in place of a file's content in its source: the content itself, unless the file was rolled back.
	Instead(ctx context.Context, source, name string, content []byte) ([]byte, error)
}

// A FileID identifies a file by the ID of its source and its name there.
type FileID struct{ SourceID, Name string }

// errClosed is what a closed Catalog fails with.
var errClosed = errors.New("the catalog is closed")

// on runs f in the reconciler's goroutine, which owns what is known of the files. It returns false if the Catalog is closed.
func (c *Catalog) on(f func(r *reconciler)) bool {
	done := make(chan struct{})
	select {
	case c.do <- func() { defer close(done); f(c.reconciler) }:
		<-done
		return true
	case <-c.done:
		return false
	}
}

// feedOf returns the source with an ID, or nil.
func feedOf(r *reconciler, id string) *feed {
	for _, f := range r.feeds {
		if f.id == id {
			return f
		}
	}
	return nil
}

// fileOf returns a file, or nil.
func fileOf(r *reconciler, id FileID) *file {
	if from := feedOf(r, id.SourceID); from != nil {
		return r.index.files[from.key(id.Name)]
	}
	return nil
}

// Open opens the version of a file that State or Files has returned. It fails with ErrChanged if the source now has another one.
func (s *FileState) Open(ctx context.Context) (io.ReadCloser, error) {
	return s.from.patience.open(ctx, s.from.Source, s.Name, s.version)
}

// A Checked is what a Catalog would make of a file.
type Checked struct {
	Digest, Version string
	// Paths are the paths of its tools. Ungranted says what some of them need but were not granted.
	Paths, Ungranted []string
	// Findings are what may cause trouble for clients.
	Findings []toolfile.Finding
}

// Check checks the content of a file as a Catalog does before it serves the file. It loads and compiles the content, runs it if it has no manifest
// section, and checks that its tools fit into their limits and that no other file has their paths. The error says why the file would be refused. The
// Catalog does not change. Check needs as much memory as loading the module. A name that does not end in .wasm means a script.
func (c *Catalog) Check(ctx context.Context, id FileID, content []byte) (checked *Checked, err error) {
	r := c.reconciler
	from := feedOf(r, id.SourceID)
	if from == nil {
		return nil, fmt.Errorf("there is no source %q", id.SourceID)
	}
	defer r.engine.Claim(contentCopies * int64(len(content)))()
	err = r.guard(&file{from: from, name: id.Name}, func() error {
		checked, err = c.check(ctx, id, content)
		return err
	})
	return checked, err
}

func (c *Catalog) check(ctx context.Context, id FileID, content []byte) (*Checked, error) {
	m, err := loadToCheck(ctx, c.reconciler, id, content)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := m.Compile(ctx); err != nil {
		return nil, err
	}
	if err := m.Describe(ctx); err != nil {
		return nil, err
	}
	if err := feedOf(c.reconciler, id.SourceID).binding.check(m); err != nil {
		return nil, err
	}
	var limitsFor func(path string) limits.Limits
	var granter toolfile.Granter
	var pins Pins
	if !c.on(func(r *reconciler) { limitsFor, granter, pins = r.limits, r.grants, r.pins }) {
		return nil, errClosed
	}
	if err := pinned(pins, id.Name, m.Digest(), m.Paths()); err != nil {
		return nil, err
	}
	if err := m.Build(limitsFor, granter); err != nil {
		return nil, err
	}
	if err := m.CheckMemory(); err != nil {
		return nil, err
	}
	checked := &Checked{Digest: m.Digest(), Paths: m.Paths(), Findings: m.Lint()}
	for _, t := range m.Tools() {
		checked.Version = t.Version
		if len(t.Missing) > 0 {
			checked.Ungranted = append(checked.Ungranted, t.Path()+": "+lacking.Of(t))
		}
	}
	if !c.on(func(r *reconciler) { err = taken(r, id, m.Tools()) }) {
		return nil, errClosed
	}
	return checked, err
}

// loadToCheck loads the content of a possible new file of a source.
func loadToCheck(ctx context.Context, r *reconciler, id FileID, content []byte) (*toolfile.Module, error) {
	place := toolfile.Place{Folder: folderOf(id.Name), Source: id.Name, Prefix: feedOf(r, id.SourceID).Prefix, Replaces: true}
	if strings.HasSuffix(id.Name, ".wasm") {
		return toolfile.Load(r.engine, content, place)
	}
	made, err := feedOf(r, id.SourceID).scripts.check(ctx, id.Name, content)
	if err != nil {
		return nil, err
	}
	return toolfile.LoadMade(r.engine, made, place)
}

// taken returns an error if another file already has one of these tools, or nil.
func taken(r *reconciler, id FileID, tools []*wasmtools.Tool) error {
	f := fileOf(r, id)
	for _, t := range tools {
		if has, ok := r.index.operations[t.OperationID()]; ok && (f == nil || has.file != f) {
			return wasmtools.Conflict(has.tool, t)
		}
	}
	return nil
}

func folderOf(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return ""
}

// Await lists a source again, and waits until the file's current version is served or refused and the table shows that. If again is true, the file is
// read again even if it has not changed. ok is false if the source does not have the file.
func (c *Catalog) Await(ctx context.Context, id FileID, again bool) (s FileState, ok bool, err error) {
	news := make(chan struct{}, 1)
	defer c.table.Subscribe(func(*wasmtools.Generation) {
		select {
		case news <- struct{}{}:
		default:
		}
	})()
	began := time.Now()
	known := c.on(func(r *reconciler) {
		from := feedOf(r, id.SourceID)
		if from == nil {
			err = fmt.Errorf("there is no source %q", id.SourceID)
			return
		}
		if f := fileOf(r, id); f != nil && again {
			f.read, f.retry, from.open[f.name] = "", time.Time{}, true
			if f.loading != nil {
				f.loading.cancel()
			}
		}
		from.doubt() // the change to the file may not have been reported yet
		r.listWithin(from, 0)
	})
	look := time.NewTicker(awaitEvery) // nothing is reported unless the table changes
	defer look.Stop()
	for known && err == nil {
		settled := false
		known = c.on(func(r *reconciler) {
			f := fileOf(r, id)
			settled = feedOf(r, id.SourceID).listedAt.After(began)
			if ok = f != nil; !ok {
				settled = settled && r.publishAt.IsZero()
				return
			}
			s = f.state()
			settled = settled && f.loading == nil && (f.read == f.listed.Version || f.listed.Err != nil) && shows(r, f)
		})
		if settled {
			return s, ok, nil
		}
		select {
		case <-news:
		case <-look.C:
		case <-ctx.Done():
			return s, ok, context.Cause(ctx)
		}
	}
	if err == nil {
		err = errClosed
	}
	return s, ok, err
}

// shows reports whether the table has the version of a file that the index serves.
func shows(r *reconciler, f *file) bool {
	if f.serving == nil {
		return r.publishAt.IsZero()
	}
	now := r.table.Current()
	return !slices.ContainsFunc(f.serving.Tools(), func(t *wasmtools.Tool) bool {
		route, ok := now.Lookup(t.Path())
		return !ok || route.Tool != t
	})
}

// awaitEvery is how often Await looks while the table does not change.
const awaitEvery = 20 * time.Millisecond
