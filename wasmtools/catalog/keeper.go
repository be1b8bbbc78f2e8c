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
	"github.com/toolsrv/toolsrv/wasmtools/catalog/precedence"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// A keeper keeps the table in step with the directory. One goroutine, run, owns all that may change in it; workers
// read, compile and describe, and hand it their results as functions through do.
type keeper struct {
	directory string
	modules   int
	engine    *sandbox.Engine
	table     *wasmtools.RouteTable
	logger    *slog.Logger
	pace      pace
	pollOnly  bool
	do        chan func()
	ctx       context.Context // ends with run

	limits func(path string) sandbox.Limits
	shelf  *shelf
	watch  watch
	// unwatched is why not all folders were watched, as it was logged last.
	unwatched string
	root      fs.FileInfo // the directory at the last scan; nil: none went well yet
	trouble   []problem   // with the directory and its folders, at the last scan
	work      work
	loads     map[*load]struct{} // under way
	published time.Duration      // what the last generation took to build
	awaited   int                // files of the first scan of which it is not known what comes of them
	delayed   int                // those of them of which that takes long
	patience  time.Time          // when the start does not wait for them any more; zero: it waits for others, too
	record    string             // where the precedence is kept, or ""
	forgetful bool               // the last one could not be

	unready   atomic.Int64  // how many awaited files no generation tells of yet, -1 before the first scan
	ready     chan struct{} // closed when unready is 0
	unsettled atomic.Bool   // something is under way that no generation tells of yet

	calm      time.Time // when nothing was pending last, or the start was not over
	expected  time.Time // until when a new file is given time to settle
	scanAt    time.Time // when the next scan is due
	publishAt time.Time // when the next generation is due; zero: nothing has changed
}

func newKeeper(ctx context.Context, o Options, table *wasmtools.RouteTable) *keeper {
	k := &keeper{
		directory: o.Directory,
		modules:   cmp.Or(o.Modules, DefaultModules),
		engine:    o.Engine,
		table:     table,
		logger:    o.Logger,
		pace:      newPace(o.Poll),
		pollOnly:  o.PollOnly,
		do:        make(chan func()),
		ctx:       ctx,
		limits:    o.Limits,
		shelf:     newShelf(o.Tools),
		work:      newWork(runtime.GOMAXPROCS(0)),
		loads:     map[*load]struct{}{},
		record:    o.Record,
		ready:     make(chan struct{}),
	}
	if k.logger == nil {
		k.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if k.shelf.before, err = precedence.Read(o.Record, o.Directory); err != nil {
		k.logger.Warn("who had a path that two files want is not known any more", "error", err)
	}
	k.unready.Store(-1)
	k.unsettled.Store(true)
	return k
}

// source names a file or folder of the directory for people.
func (k *keeper) source(name string) string {
	return filepath.Join(k.directory, filepath.FromSlash(name))
}

// run follows the directory until the keeper's context ends.
func (k *keeper) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for k.ctx.Err() == nil {
		now := time.Now()
		if !now.Before(k.scanAt) {
			k.scan(now)
		}
		if !k.patience.IsZero() && !now.Before(k.patience) {
			k.goOn()
		}
		k.work.start(k.ctx, k.do)
		if k.comeAgain(now) { // before a generation lacks what comes back in another place
			k.unsettled.Store(true)
		}
		// A file that comes alone is published at once, of many that come together some in each generation.
		if !k.publishAt.IsZero() && (len(k.loads) == 0 || !now.Before(k.publishAt)) {
			k.publish()
		}
		k.unsettled.Store(k.comeAgain(now))
		timer.Reset(time.Until(k.due()))
		events, failures := k.watch.channels()
		select {
		case <-k.ctx.Done():
		case f := <-k.do:
			f()
		case <-events:
			k.scanWithin(k.pace.debounce)
		case err := <-failures:
			k.logger.Debug("file notification failed, scanning instead", "error", err)
			k.scanWithin(k.pace.debounce)
		case <-timer.C:
		}
	}
}

// close waits for the workers and closes all programs.
func (k *keeper) close() {
	k.watch.close()
	for k.work.running() > 0 {
		(<-k.do)()
	}
	for l := range k.loads {
		k.drop(l)
	}
	k.shelf.close()
}

// due returns when there is something to do unless something happens before.
func (k *keeper) due() time.Time {
	next := k.scanAt
	for _, at := range []time.Time{k.publishAt, k.patience} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// scanWithin has a scan run in d at the latest.
func (k *keeper) scanWithin(d time.Duration) {
	if at := time.Now().Add(d); at.Before(k.scanAt) {
		k.scanAt = at
	}
}

// changed has the table published soon.
func (k *keeper) changed() {
	if !k.publishAt.IsZero() {
		return
	}
	wait := k.pace.debounce
	if k.shelf.starting && k.work.reading() {
		wait = startDebounce
	}
	// A generation of many tools takes a while to build: leave most of the time to other work.
	k.publishAt = time.Now().Add(max(wait, min(4*k.published, startDebounce)))
}

// startDebounce is the time between two generations while the files of the first scan come in.
const startDebounce = 500 * time.Millisecond

// scan compares the directory with what is known of it.
func (k *keeper) scan(now time.Time) {
	k.scanAt = now.Add(k.pace.safety)
	seen, err := scan(k.directory, k.modules)
	if err == nil && k.root != nil && len(seen.files) == 0 && len(k.shelf.files) > 0 && !os.SameFile(seen.folders["."], k.root) {
		err = errors.New("an empty folder has taken the place of the directory, as when a volume is unmounted: put its modules back, or restart if none are to be served")
	}
	if err != nil {
		k.troubled([]problem{{".", err}})
		k.scanWithin(k.pace.poll)
		return
	}
	first := k.root == nil
	k.root = seen.folders["."]
	k.follow(seen, now)
	k.troubled(seen.problems)
	if first {
		k.begin(seen, now)
		return
	}
	var fresh []found
	for _, e := range seen.files {
		if k.look(e, now) {
			fresh = append(fresh, e)
		}
	}
	k.warnOfFiles(fresh, seen.folders)
	k.forget(seen)
}

// begin has all files of the first scan loaded. They have been there before us, so none is given time to settle.
func (k *keeper) begin(seen *listing, now time.Time) {
	k.shelf.starting = true
	k.shelf.turn = k.shelf.before.Turns(seen.paths())
	k.warnOfDirectory()
	var fresh []found
	for _, e := range seen.files {
		f := k.shelf.at(e.path)
		f.observed, f.since = e.info, now
		if e.err != nil {
			k.refuse(f, e.err)
			continue
		}
		f.awaited = true
		k.awaited++
		k.queueLoad(f)
		fresh = append(fresh, e)
	}
	k.warnOfFiles(fresh, seen.folders)
	k.changed()
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

// look compares a file with what is known of it, and has it loaded once it has settled. It reports whether it does so for the
// first time with what is there now.
func (k *keeper) look(e found, now time.Time) bool {
	f := k.shelf.at(e.path)
	if !same(f.observed, e.info) {
		f.observed, f.since = e.info, now
	}
	if f.appeared.IsZero() {
		f.appeared = now
	}
	known := f.read
	if f.loading != nil {
		known = f.loading.info
	}
	if e.err == nil {
		if same(known, e.info) {
			return false
		}
		if left := k.pace.unsettled(e.info, f.since, now); left > 0 {
			k.scanWithin(left)
			if now.Sub(f.appeared) < maxExpected { // not for as long as somebody writes
				k.expected = later(k.expected, now.Add(left))
			}
			return false
		}
	}
	switch {
	case f.loading != nil:
		f.loading.cancel() // take has the newer version looked at
	case e.err != nil:
		f.read = nil
		k.refuse(f, e.err)
		k.arrived(f)
	default:
		again := same(f.tried, e.info)
		k.queueLoad(f)
		return !again
	}
	return false
}

// maxExpected is how long a new file that has not settled may have clients wait for its tools.
const maxExpected = time.Second

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// forget drops the files that are gone.
func (k *keeper) forget(seen *listing) {
	gone := false
	for name, f := range k.shelf.files {
		_, here := slices.BinarySearchFunc(seen.files, name, func(e found, name string) int { return cmp.Compare(e.path, name) })
		if !here && seen.knows(name) {
			if f.loading != nil {
				f.loading.cancel()
			}
			k.arrived(f)
			k.shelf.remove(f)
			gone = true
		}
	}
	if gone {
		k.settle()
		k.changed()
	}
}

// arrived notes that it is known what comes of a file.
func (k *keeper) arrived(f *file) {
	if !f.awaited {
		return
	}
	if f.delayed {
		k.delayed--
	}
	f.awaited, f.delayed = false, false
	k.awaited--
	if k.shelf.starting = k.awaited > 0; !k.shelf.starting {
		k.changed()
	}
	k.hold()
}

// delay notes that what comes of a file takes long to be known.
func (k *keeper) delay(f *file) {
	if f.awaited && !f.delayed {
		f.delayed = true
		k.delayed++
		k.hold()
	}
}

// hold sets how long the start waits, once it waits for nothing but what takes long.
func (k *keeper) hold() {
	switch {
	case k.awaited == 0 || k.awaited > k.delayed:
		k.patience = time.Time{}
	case k.patience.IsZero():
		k.patience = time.Now().Add(k.pace.patience)
	}
}

// goOn has the start wait for no more files: each may run for as long as the sandbox lets it, and there may be thousands.
func (k *keeper) goOn() {
	k.logger.Warn("the start does not wait for modules that take long to be described, or change all the time: embed their manifests with `toolsrv pack`", "files", k.awaited)
	for _, f := range k.shelf.files {
		k.arrived(f)
	}
}

// drop ends a load.
func (k *keeper) drop(l *load) {
	l.cancel()
	delete(k.loads, l)
	if l.file.loading == l {
		l.file.loading = nil
	}
	if l.module != nil {
		l.module.Close()
	}
}

// take makes of a load what is to be made: a module that is served, a refusal, or another try.
func (k *keeper) take(l *load) {
	f, m := l.file, l.module
	superseded := l.ctx.Err() != nil
	if k.shelf.files[f.path] != f || superseded { // it is gone, or has a newer version; another may be there by now
		k.delay(f) // the next one may be replaced in time, too
		k.drop(l)
		k.scanWithin(0)
		return
	}
	l.module = nil
	k.drop(l)
	f.read = l.info
	if !same(f.observed, l.info) {
		k.scanWithin(k.pace.settle)
	}
	if l.err == nil && m != nil {
		l.err = m.limit(k.limits)
	}
	if l.err != nil && m != nil {
		m.Close()
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
	case m == nil && (f.serving == nil || f.serving.Digest() != l.served):
		f.read = nil // what it was compared with has gone since
		k.scanWithin(k.pace.settle)
	case m == nil: // touched, or put back to what is served
		k.shelf.stopWaiting(f)
		k.refuse(f, nil)
	default:
		m.first = f.awaited
		if k.shelf.offer(f, m) {
			k.serve(f)
		}
		k.settle()
		k.changed()
	}
	k.arrived(f)
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
	if m == nil || m.compiled {
		return
	}
	k.work.add(&k.work.compiles, f.observed.Size(), func(ctx context.Context) func() {
		err := k.guard(f.path, func() error { return m.Compile(ctx) })
		return func() {
			m.compiled = err == nil
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
	for _, f := range k.shelf.files {
		var memory *toolfile.MemoryError
		if errors.As(f.refused, &memory) { // it may be taken now
			f.read = nil
			k.scanWithin(0)
		}
		if err := k.shelf.limit(f, limits); err != nil {
			k.refuse(f, err)
		}
	}
	k.settle()
	k.table.SetPolicy(p)
	k.publish()
}
