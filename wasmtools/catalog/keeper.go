package catalog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A keeper keeps the table in step with the directory. One goroutine, run, owns all that may change in it; workers
// read and compile, and hand it their results as functions through do.
type keeper struct {
	directory string
	engine    *sandbox.Engine
	table     *wasmtools.RouteTable
	logger    *slog.Logger
	pace      pace
	pollOnly  bool
	do        chan func()

	limits func(path string) sandbox.Limits
	shelf  *shelf
	watch  watch
	// unwatched is why not all folders were watched, as it was logged last.
	unwatched string
	root      fs.FileInfo // the directory at the last scan
	trouble   []problem   // with the directory and its folders, at the last scan
	work      work
	// undescribed files of the first scan wait for those before them, so that who wins a path depends on no race.
	undescribed []*file
	awaited     atomic.Int64 // how many undescribed files no generation tells of yet

	scanAt    time.Time // when the next scan is due
	publishAt time.Time // when the next generation is due; zero: nothing has changed
}

func newKeeper(o Options, table *wasmtools.RouteTable) *keeper {
	k := &keeper{
		directory: o.Directory,
		engine:    o.Engine,
		table:     table,
		logger:    o.Logger,
		pace:      newPace(o.Poll),
		pollOnly:  o.PollOnly,
		do:        make(chan func()),
		limits:    o.Limits,
		shelf:     newShelf(),
		work:      work{most: max(2, runtime.GOMAXPROCS(0)/2)}, // the rest is left to calls
	}
	if k.logger == nil {
		k.logger = slog.New(slog.DiscardHandler)
	}
	return k
}

// source names a file or folder of the directory for people.
func (k *keeper) source(name string) string {
	return filepath.Join(k.directory, filepath.FromSlash(name))
}

// first scans the directory and publishes what its manifests say. Nothing else runs yet. Where it fails, close must
// be called.
func (k *keeper) first(ctx context.Context) error {
	seen, err := scan(k.directory)
	if err != nil {
		return err
	}
	now := time.Now()
	k.scanAt = now.Add(k.pace.safety)
	k.root, k.trouble = seen.folders["."], seen.problems
	loads := make([]load, len(seen.files))
	sideBySide(ctx, len(loads), func(i int) {
		if e := seen.files[i]; e.err == nil {
			loads[i] = k.load(ctx, e.path, e.info, "", false)
		}
	})
	for i, e := range seen.files {
		f := k.shelf.at(e.path)
		f.observed, f.since = e.info, now
		switch {
		case e.err != nil:
			f.refused = e.err
		case loads[i].undescribed:
			k.undescribed = append(k.undescribed, f)
			k.queueLoad(f)
		default:
			k.take(f, loads[i])
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	k.follow(seen, now)
	k.publish()
	return nil
}

// run follows the directory until ctx ends.
func (k *keeper) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		k.work.start(ctx, k.do)
		timer.Reset(time.Until(k.due()))
		events, failures := k.watch.channels()
		select {
		case <-ctx.Done():
		case f := <-k.do:
			f()
		case <-events:
			k.scanWithin(k.pace.debounce)
		case err := <-failures:
			k.logger.Debug("file notification failed, scanning instead", "error", err)
			k.scanWithin(k.pace.debounce)
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(k.scanAt) {
			k.scan(now)
		}
		// A file that comes alone is published at once, of many that come together some in each generation.
		if !k.publishAt.IsZero() && (k.work.idle() || !now.Before(k.publishAt)) {
			k.publish()
		}
	}
}

// close waits for the workers and closes all programs.
func (k *keeper) close() {
	k.watch.close()
	for k.work.running() > 0 {
		(<-k.do)()
	}
	for _, f := range k.undescribed {
		if f.result != nil && f.result.module != nil {
			f.result.module.Close()
		}
	}
	k.shelf.close()
}

// due returns when there is something to do unless something happens before.
func (k *keeper) due() time.Time {
	if !k.publishAt.IsZero() && k.publishAt.Before(k.scanAt) {
		return k.publishAt
	}
	return k.scanAt
}

// scanWithin has a scan run in d at the latest.
func (k *keeper) scanWithin(d time.Duration) {
	if at := time.Now().Add(d); at.Before(k.scanAt) {
		k.scanAt = at
	}
}

// changed has the table published soon.
func (k *keeper) changed() {
	if k.publishAt.IsZero() {
		k.publishAt = time.Now().Add(k.pace.debounce)
	}
}

// scan compares the directory with what is known of it.
func (k *keeper) scan(now time.Time) {
	k.scanAt = now.Add(k.pace.safety)
	seen, err := scan(k.directory)
	if err == nil && len(seen.files) == 0 && len(k.shelf.files) > 0 && !os.SameFile(seen.folders["."], k.root) {
		err = errors.New("an empty folder has taken the place of the directory, as when a volume is unmounted: put its modules back, or restart if none are to be served")
	}
	if err != nil {
		k.troubled([]problem{{".", err}})
		k.scanWithin(k.pace.poll)
		return
	}
	k.root = seen.folders["."]
	k.follow(seen, now)
	k.troubled(seen.problems)
	for _, e := range seen.files {
		k.look(e, now)
	}
	k.forget(seen)
}

// follow has the folders watched, or scanned often where not all that matters can be watched.
func (k *keeper) follow(seen *listing, now time.Time) {
	if k.pollOnly {
		k.scanWithin(k.pace.poll)
		return
	}
	if k.watch.follow(k.directory, seen.folders, now, k.pace.safety) {
		k.scanWithin(k.pace.debounce) // for what came between the scan and the watch
		if err := k.watch.err; err != nil && err.Error() != k.unwatched {
			k.unwatched = err.Error()
			k.logger.Warn("not all folders can be watched: looking at them again and again instead", "every", k.pace.poll, "error", err)
		}
	}
	if k.watch.err != nil || seen.links {
		k.scanWithin(k.pace.poll)
	}
}

// troubled notes what is wrong with folders.
func (k *keeper) troubled(problems []problem) {
	if !slices.EqualFunc(problems, k.trouble, func(a, b problem) bool { return a.path == b.path && a.err.Error() == b.err.Error() }) {
		k.trouble = problems
		k.changed()
	}
}

// look compares a file with what is known of it, and has it loaded once it has settled.
func (k *keeper) look(e found, now time.Time) {
	f := k.shelf.at(e.path)
	if !same(f.observed, e.info) {
		f.observed, f.since = e.info, now
	}
	switch {
	case f.busy: // take asks for another scan where the worker has another version
	case e.err != nil:
		f.read = nil
		k.refuse(f, e.err)
	case same(f.read, e.info):
	default:
		if left := k.pace.unsettled(e.info, f.since, now); left > 0 {
			k.scanWithin(left)
			return
		}
		k.queueLoad(f)
	}
}

// forget drops the files that are gone.
func (k *keeper) forget(seen *listing) {
	gone := false
	for name, f := range k.shelf.files {
		_, here := slices.BinarySearchFunc(seen.files, name, func(e found, name string) int { return cmp.Compare(e.path, name) })
		if !here && seen.knows(name) {
			k.shelf.remove(f)
			gone = true
		}
	}
	if gone {
		k.takeUndescribed()
		k.settle()
		k.changed()
	}
}

// queueLoad has a worker load a file, ready to be served.
func (k *keeper) queueLoad(f *file) {
	f.busy = true
	info, served := f.observed, ""
	if f.serving != nil {
		served = f.serving.Digest()
	}
	k.work.add(&k.work.loads, func(ctx context.Context) func() {
		l := k.load(ctx, f.path, info, served, true)
		return func() { k.loaded(f, l) }
	})
}

// loaded takes a worker's result.
func (k *keeper) loaded(f *file, l load) {
	if k.shelf.files[f.path] != f { // it is gone; another may be there by now
		if l.module != nil {
			l.module.Close()
		}
		return
	}
	if slices.Contains(k.undescribed, f) {
		f.result = &l
		k.takeUndescribed()
		return
	}
	k.take(f, l)
}

// takeUndescribed takes the results of the first scan that have come and wait for no other.
func (k *keeper) takeUndescribed() {
	for len(k.undescribed) > 0 {
		f := k.undescribed[0]
		here := k.shelf.files[f.path] == f
		if here && f.result == nil {
			return
		}
		k.undescribed = k.undescribed[1:]
		switch {
		case here:
			k.take(f, *f.result)
		case f.result != nil && f.result.module != nil:
			f.result.module.Close()
		}
	}
}

// take makes of a load what is to be made: a module that is served, a refusal, or another try.
func (k *keeper) take(f *file, l load) {
	f.busy, f.result, f.read = false, nil, l.info
	if !same(f.observed, l.info) {
		k.scanWithin(k.pace.settle)
	}
	if l.err == nil && l.module != nil {
		if l.err = l.module.Build(k.limits); l.err != nil {
			l.module.Close()
		}
	}
	switch {
	case errors.Is(l.err, errChanged):
		f.read = nil
		k.scanWithin(k.pace.settle)
	case l.err != nil:
		if passing(l.err) {
			f.read = nil
		}
		k.shelf.stopWaiting(f)
		k.refuse(f, l.err)
	case l.module == nil && (f.serving == nil || f.serving.Digest() != l.served):
		f.read = nil // what it was compared with has gone since
		k.scanWithin(k.pace.settle)
	case l.module == nil: // touched, or put back to what is served
		k.shelf.stopWaiting(f)
		k.refuse(f, nil)
	default:
		if k.shelf.offer(f, l.module) {
			k.serve(f)
		}
		k.settle()
		k.changed()
	}
}

// refuse notes why a file is not served as it is, or nil where that is over. What it served before stays.
func (k *keeper) refuse(f *file, err error) {
	if f.refused == nil && err == nil || f.refused != nil && err != nil && f.refused.Error() == err.Error() {
		return
	}
	f.refused = err
	k.changed()
}

// settle lets files in that waited for others.
func (k *keeper) settle() {
	for _, f := range k.shelf.settle() {
		k.serve(f)
	}
}

// serve has the module that a file serves compiled, if it is not yet. One that can't be compiled is withdrawn.
func (k *keeper) serve(f *file) {
	m := f.serving
	if m.compiled {
		return
	}
	k.work.add(&k.work.compiles, func(ctx context.Context) func() {
		err := k.guard(f.path, func() error { return m.Compile(ctx) })
		return func() {
			m.compiled = true
			if err == nil || ctx.Err() != nil || f.serving != m {
				return
			}
			k.shelf.withdraw(f)
			k.refuse(f, err)
			if passing(err) {
				f.read = nil
			}
			k.settle()
			k.changed()
		}
	})
}

// reconfigure changes limits and policy.
func (k *keeper) reconfigure(limits func(path string) sandbox.Limits, p wasmtools.Policy) {
	k.limits = limits
	if err := k.shelf.limit(limits); err != nil {
		k.logger.Error("some tools keep their old limits", "error", err)
	}
	k.table.SetPolicy(p)
	k.publish()
}
