package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// openVersions opens the store of versions of files. If it can't find out which files were rolled back, all are served as they are.
func openVersions(ctx context.Context, s *Service, c *config.Config, store state.Store) *versions.Store {
	o := versions.Options{
		Directory: s.State.Directory(), MakeDirectory: local.MakeDirectory, Logger: s.Logger,
		Bytes: func() int64 {
			if now := s.InForce(); now != nil {
				return now.State.Versions
			}
			return c.State.Versions
		},
	}
	if store != nil {
		o.Space = store.Space(versions.Space)
	}
	v, err := versions.Open(ctx, o)
	if err != nil {
		s.Logger.Error("files that were rolled back are served in their sources' versions", "error", err)
	}
	return v
}

// A keeper stores each version of a file that a service serves. It starts once all files are compiled, so as not to slow down a start.
type keeper struct{ of *Service }

// run stores versions until ctx ends.
func (k keeper) run(ctx context.Context) {
	if k.of.State.Directory() == "" || k.of.Catalog.WaitCompiled(ctx) != nil {
		return
	}
	news := make(chan struct{}, 1)
	news <- struct{}{}
	defer k.of.Table.Subscribe(func(*wasmtools.Generation) {
		select {
		case news <- struct{}{}:
		default:
		}
	})()
	failed := ""
	type state struct {
		edits uint64
		bytes int64
	}
	var kept *state // the state when everything had been stored
	for {
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
		now := state{k.of.Catalog.Edits(), k.of.Versions.Bytes()}
		if kept != nil && *kept == now { // this was only a switch or a reload, so there is no need to look at thousands of files
			continue
		}
		err := k.all(ctx)
		if ctx.Err() != nil {
			return
		}
		if kept = nil; err == nil {
			kept, failed = &now, ""
		} else if failed != err.Error() {
			failed = err.Error()
			k.of.Logger.Warn("not all versions of files are kept, so some can't be rolled back to", "error", err)
		}
		if !wait(ctx, keepEvery) {
			return
		}
	}
}

// keepEvery is the time between two searches for new versions.
const keepEvery = time.Second

// all stores the served versions that have not been stored yet. It works at most half of the time, so that calls come first.
func (k keeper) all(ctx context.Context) (failed error) {
	s := k.of
	if !s.Versions.IsOn() {
		return nil
	}
	if err := s.Versions.Look(); err != nil {
		return err
	}
	files := s.Catalog.Files()
	live := make([]versions.File, 0, len(files))
	for i := range files {
		live = append(live, versions.File{Source: files[i].SourceID, Name: files[i].Name})
	}
	s.Versions.SetLive(live)
	hangs := map[string]bool{} // sources
	for i := range files {
		f := &files[i]
		if f.Content == "" || f.SourceID == "" || hangs[f.SourceID] || s.Versions.Has(live[i], f.Content) {
			continue
		}
		began := time.Now()
		err := k.one(ctx, f, live[i])
		if err != nil && failed == nil {
			failed = err
		}
		hangs[f.SourceID] = errors.Is(err, errSlow)
		if errors.Is(failed, versions.ErrFull) || !wait(ctx, time.Since(began)) {
			return failed
		}
	}
	return failed
}

// readWithin is how long reading a file to store may take.
const readWithin = 30 * time.Second

// errSlow means that a file could not be read in time.
var errSlow = fmt.Errorf("its source did not deliver a file within %v", readWithin)

// one stores a version of a file. It does nothing if the source no longer has that version.
func (k keeper) one(ctx context.Context, f *catalog.FileState, as versions.File) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readWithin, errSlow)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	content, err := f.Open(ctx)
	if err == nil {
		defer content.Close()
		defer context.AfterFunc(ctx, func() { content.Close() })() // so that a hanging source is not waited for
		err = k.of.Versions.Keep(as, f.Content, f.Size, content)
	}
	if errors.Is(err, catalog.ErrChanged) || errors.Is(err, versions.ErrChanged) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// wait waits, and returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
