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

// A reconciler keeps the table in step with the directory. One goroutine, run, owns all that may change in it; workers
// read, compile and describe, and hand it their results as functions through do.
type reconciler struct {
	directory string
	modules   int
	engine    *sandbox.Engine
	table     *wasmtools.RouteTable
	logger    *slog.Logger
	intervals intervals
	pollOnly  bool
	do        chan func()
	ctx       context.Context // ends with run

	limits func(path string) sandbox.Limits
	index  *index
	watch  watch
	// unwatched is why not all folders were watched, as it was logged last.
	unwatched    string
	root         fs.FileInfo // the directory at the last scan; nil: none went well yet
	problems     []problem   // with the directory and its folders, at the last scan
	queues       queues
	loads        map[*load]struct{} // under way
	published    time.Duration      // what the last generation took to build
	awaited      int                // files of the first scan of which it is not known what comes of them
	slow         int                // those of them of which that takes long
	deadline     time.Time          // when the start does not wait for them any more; zero: it waits for others, too
	record       string             // where the precedence is kept, or ""
	recordFailed bool               // the last one could not be

	unready   atomic.Int64  // how many awaited files no generation tells of yet, -1 before the first scan
	ready     chan struct{} // closed when unready is 0
	unsettled atomic.Bool   // something is under way that no generation tells of yet

	calmSince time.Time // when nothing was pending last, or the start was not over
	settling  time.Time // until when a new file is given time to settle
	scanAt    time.Time // when the next scan is due
	publishAt time.Time // when the next generation is due; zero: nothing has changed
}

func newReconciler(ctx context.Context, o Options, table *wasmtools.RouteTable) *reconciler {
	r := &reconciler{
		directory: o.Directory,
		modules:   cmp.Or(o.Modules, DefaultModules),
		engine:    o.Engine,
		table:     table,
		logger:    o.Logger,
		intervals: newIntervals(o.Poll),
		pollOnly:  o.PollOnly,
		do:        make(chan func()),
		ctx:       ctx,
		limits:    o.Limits,
		index:     newIndex(o.Tools),
		queues:    newQueues(runtime.GOMAXPROCS(0)),
		loads:     map[*load]struct{}{},
		record:    o.Record,
		ready:     make(chan struct{}),
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.index.before, err = precedence.Read(o.Record, o.Directory); err != nil {
		r.logger.Warn("who had a path that two files want is not known any more", "error", err)
	}
	r.unready.Store(-1)
	r.unsettled.Store(true)
	return r
}

// source names a file or folder of the directory for people.
func (r *reconciler) source(name string) string {
	return filepath.Join(r.directory, filepath.FromSlash(name))
}

// run follows the directory until the reconciler's context ends.
func (r *reconciler) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for r.ctx.Err() == nil {
		now := time.Now()
		if !now.Before(r.scanAt) {
			r.scan(now)
		}
		if !r.deadline.IsZero() && !now.Before(r.deadline) {
			r.stopAwaiting()
		}
		r.queues.start(r.ctx, r.do)
		if r.adviseRetry(now) { // before a generation lacks what comes back in another place
			r.unsettled.Store(true)
		}
		// A file that comes alone is published at once, of many that come together some in each generation.
		if !r.publishAt.IsZero() && (len(r.loads) == 0 || !now.Before(r.publishAt)) {
			r.publish()
		}
		r.unsettled.Store(r.adviseRetry(now))
		timer.Reset(time.Until(r.due()))
		events, failures := r.watch.channels()
		select {
		case <-r.ctx.Done():
		case f := <-r.do:
			f()
		case <-events:
			r.scanWithin(r.intervals.debounce)
		case err := <-failures:
			r.logger.Debug("file notification failed, scanning instead", "error", err)
			r.scanWithin(r.intervals.debounce)
		case <-timer.C:
		}
	}
}

// close waits for the workers and closes all programs.
func (r *reconciler) close() {
	r.watch.close()
	for r.queues.running() > 0 {
		(<-r.do)()
	}
	for l := range r.loads {
		r.endLoad(l)
	}
	r.index.close()
}

// due returns when there is something to do unless something happens before.
func (r *reconciler) due() time.Time {
	next := r.scanAt
	for _, at := range []time.Time{r.publishAt, r.deadline} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// scanWithin has a scan run in d at the latest.
func (r *reconciler) scanWithin(d time.Duration) {
	if at := time.Now().Add(d); at.Before(r.scanAt) {
		r.scanAt = at
	}
}

// publishSoon has the table published soon.
func (r *reconciler) publishSoon() {
	if !r.publishAt.IsZero() {
		return
	}
	wait := r.intervals.debounce
	if r.index.starting && r.queues.reading() {
		wait = startDebounce
	}
	// A generation of many tools takes a while to build: leave most of the time to other work.
	r.publishAt = time.Now().Add(max(wait, min(4*r.published, startDebounce)))
}

// startDebounce is the time between two generations while the files of the first scan come in.
const startDebounce = 500 * time.Millisecond

// scan compares the directory with what is known of it.
func (r *reconciler) scan(now time.Time) {
	r.scanAt = now.Add(r.intervals.safety)
	seen, err := scan(r.directory, r.modules)
	if err == nil && r.root != nil && len(seen.files) == 0 && len(r.index.files) > 0 && !os.SameFile(seen.folders["."], r.root) {
		err = errors.New("an empty folder has taken the place of the directory, as when a volume is unmounted: put its modules back, or restart if none are to be served")
	}
	if err != nil {
		r.setProblems([]problem{{".", err}})
		r.scanWithin(r.intervals.poll)
		return
	}
	first := r.root == nil
	r.root = seen.folders["."]
	r.follow(seen, now)
	r.setProblems(seen.problems)
	if first {
		r.begin(seen, now)
		return
	}
	var fresh []found
	for _, e := range seen.files {
		if r.compare(e, now) {
			fresh = append(fresh, e)
		}
	}
	r.warnOfFiles(fresh, seen.folders)
	r.forget(seen)
}

// begin has all files of the first scan loaded. They have been there before us, so none is given time to settle.
func (r *reconciler) begin(seen *listing, now time.Time) {
	r.index.starting = true
	r.index.turn = r.index.before.Turns(seen.paths())
	r.warnOfDirectory()
	var fresh []found
	for _, e := range seen.files {
		f := r.index.at(e.path)
		f.observed, f.since = e.info, now
		if e.err != nil {
			r.refuse(f, e.err)
			continue
		}
		f.awaited = true
		r.awaited++
		r.queueLoad(f)
		fresh = append(fresh, e)
	}
	r.warnOfFiles(fresh, seen.folders)
	r.publishSoon()
}

// follow has the folders watched, or scanned often where not all that matters can be watched.
func (r *reconciler) follow(seen *listing, now time.Time) {
	if r.pollOnly {
		r.scanWithin(r.intervals.poll)
		return
	}
	if r.watch.follow(r.directory, seen.folders, now, r.intervals.safety) {
		r.scanWithin(r.intervals.debounce) // for what came between the scan and the watch
		if err := r.watch.err; err != nil && err.Error() != r.unwatched {
			r.unwatched = err.Error()
			r.logger.Warn("not all folders can be watched: looking at them again and again instead", "every", r.intervals.poll, "error", err)
		}
	}
	if r.watch.err != nil || seen.links {
		r.scanWithin(r.intervals.poll)
	}
}

// setProblems notes what is wrong with folders.
func (r *reconciler) setProblems(problems []problem) {
	if !slices.EqualFunc(problems, r.problems, func(a, b problem) bool { return a.path == b.path && a.err.Error() == b.err.Error() }) {
		r.problems = problems
		r.publishSoon()
	}
}

// compare compares a file with what is known of it, and has it loaded once it has settled. It reports whether it does so for the
// first time with what is there now.
func (r *reconciler) compare(e found, now time.Time) bool {
	f := r.index.at(e.path)
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
		if left := r.intervals.unsettled(e.info, f.since, now); left > 0 {
			r.scanWithin(left)
			if now.Sub(f.appeared) < maxSettling { // not for as long as somebody writes
				r.settling = later(r.settling, now.Add(left))
			}
			return false
		}
	}
	switch {
	case f.loading != nil:
		f.loading.cancel() // finish has the newer version looked at
	case e.err != nil:
		f.read = nil
		r.refuse(f, e.err)
		r.decided(f)
	default:
		again := same(f.tried, e.info)
		r.queueLoad(f)
		return !again
	}
	return false
}

// maxSettling is how long a new file that has not settled may have clients wait for its tools.
const maxSettling = time.Second

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// forget drops the files that are gone.
func (r *reconciler) forget(seen *listing) {
	gone := false
	for name, f := range r.index.files {
		_, here := slices.BinarySearchFunc(seen.files, name, func(e found, name string) int { return cmp.Compare(e.path, name) })
		if !here && seen.knows(name) {
			if f.loading != nil {
				f.loading.cancel()
			}
			r.decided(f)
			r.index.remove(f)
			gone = true
		}
	}
	if gone {
		r.settle()
		r.publishSoon()
	}
}

// decided notes that it is known what comes of a file.
func (r *reconciler) decided(f *file) {
	if !f.awaited {
		return
	}
	if f.slow {
		r.slow--
	}
	f.awaited, f.slow = false, false
	r.awaited--
	if r.index.starting = r.awaited > 0; !r.index.starting {
		r.publishSoon()
	}
	r.setDeadline()
}

// markSlow notes that what comes of a file takes long to be known.
func (r *reconciler) markSlow(f *file) {
	if f.awaited && !f.slow {
		f.slow = true
		r.slow++
		r.setDeadline()
	}
}

// setDeadline sets how long the start waits, once it waits for nothing but what takes long.
func (r *reconciler) setDeadline() {
	switch {
	case r.awaited == 0 || r.awaited > r.slow:
		r.deadline = time.Time{}
	case r.deadline.IsZero():
		r.deadline = time.Now().Add(r.intervals.wait)
	}
}

// stopAwaiting has the start wait for no more files: each may run for as long as the sandbox lets it, and there may be thousands.
func (r *reconciler) stopAwaiting() {
	r.logger.Warn("the start does not wait for modules that take long to be described, or change all the time: embed their manifests with `toolsrv pack`", "files", r.awaited)
	for _, f := range r.index.files {
		r.decided(f)
	}
}

// endLoad ends a load.
func (r *reconciler) endLoad(l *load) {
	l.cancel()
	delete(r.loads, l)
	if l.file.loading == l {
		l.file.loading = nil
	}
	if l.module != nil {
		l.module.Close()
	}
}

// finish makes of a load what is to be made: a module that is served, a refusal, or another try.
func (r *reconciler) finish(l *load) {
	f, m := l.file, l.module
	superseded := l.ctx.Err() != nil
	if r.index.files[f.path] != f || superseded { // it is gone, or has a newer version; another may be there by now
		r.markSlow(f) // the next one may be replaced in time, too
		r.endLoad(l)
		r.scanWithin(0)
		return
	}
	l.module = nil
	r.endLoad(l)
	f.read = l.info
	if !same(f.observed, l.info) {
		r.scanWithin(r.intervals.settle)
	}
	if l.err == nil && m != nil {
		l.err = m.limit(r.limits)
	}
	if l.err != nil && m != nil {
		m.Close()
	}
	switch {
	case errors.Is(l.err, errChanged):
		f.read = nil
		r.scanWithin(r.intervals.settle)
	case l.err != nil:
		if transient(l.err) {
			f.read = nil
		}
		r.index.stopWaiting(f)
		r.refuse(f, l.err)
	case m == nil && (f.serving == nil || f.serving.Digest() != l.served):
		f.read = nil // what it was compared with has gone since
		r.scanWithin(r.intervals.settle)
	case m == nil: // touched, or put back to what is served
		r.index.stopWaiting(f)
		r.refuse(f, nil)
	default:
		m.first = f.awaited
		if r.index.offer(f, m) {
			r.serve(f)
		}
		r.settle()
		r.publishSoon()
	}
	r.decided(f)
}

// refuse notes why a file is not served as it is, or nil where that is over. What it served before stays.
func (r *reconciler) refuse(f *file, err error) {
	if f.refused == nil && err == nil || f.refused != nil && err != nil && f.refused.Error() == err.Error() {
		return
	}
	f.refused = err
	r.publishSoon()
}

// settle lets files in that waited for others.
func (r *reconciler) settle() {
	for _, f := range r.index.settle() {
		r.serve(f)
	}
}

// serve has the module that a file serves compiled, if it is not yet. One that can't be compiled is withdrawn.
func (r *reconciler) serve(f *file) {
	m := f.serving
	if m == nil || m.compiled {
		return
	}
	r.queues.add(&r.queues.compiles, f.observed.Size(), func(ctx context.Context) func() {
		err := r.guard(f.path, func() error { return m.Compile(ctx) })
		return func() {
			m.compiled = err == nil
			if err == nil || ctx.Err() != nil || f.serving != m {
				return
			}
			r.index.withdraw(f)
			r.refuse(f, err)
			if transient(err) {
				f.read = nil
			}
			r.settle()
			r.publishSoon()
		}
	})
}

// reconfigure changes limits and policy.
func (r *reconciler) reconfigure(limits func(path string) sandbox.Limits, p wasmtools.Policy) {
	r.limits = limits
	for _, f := range r.index.files {
		var memory *toolfile.MemoryError
		if errors.As(f.refused, &memory) { // it may be taken now
			f.read = nil
			r.scanWithin(0)
		}
		if err := r.index.limit(f, limits); err != nil {
			r.refuse(f, err)
		}
	}
	r.settle()
	r.table.SetPolicy(p)
	r.publish()
}
