package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/precedence"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// A reconciler keeps the table in step with the source. One goroutine, run, owns all that may change in it; workers
// list, read, compile and describe, and hand it their results as functions through do.
type reconciler struct {
	source    Source
	engine    *sandbox.Engine
	table     *wasmtools.RouteTable
	logger    *slog.Logger
	intervals intervals
	do        chan func()
	ctx       context.Context // ends with run

	limits func(path string) limits.Limits
	index  *index
	queues queues
	loads  map[*load]struct{} // under way

	listing  bool          // a listing is under way
	listed   bool          // one went well
	listedAt time.Time     // the last one that went well began
	listTook time.Duration // the last one
	problems []problem     // with the source and its folders, at the last listing

	published    time.Duration // what the last generation took to build
	awaited      int           // files of the first listing of which it is not known what comes of them
	slow         int           // those of them of which that takes long
	stalled      int           // reads that take long
	deadline     time.Time     // when the start does not wait for them any more; zero: it waits for others, too
	record       string        // where the precedence is kept, or ""
	recordFailed bool          // the last one could not be

	unready   atomic.Int64  // how many awaited files no generation tells of yet, -1 before the first listing
	ready     chan struct{} // closed when unready is 0
	unsettled atomic.Bool   // something is under way that no generation tells of yet

	calmSince time.Time // when nothing was pending last, or the start was not over
	settling  time.Time // until when a new file is given time to settle
	listAt    time.Time // when the next listing is due; zero: when a change is told
	publishAt time.Time // when the next generation is due; zero: nothing has changed
}

func newReconciler(ctx context.Context, o Options, table *wasmtools.RouteTable) *reconciler {
	r := &reconciler{
		source:    o.Source,
		engine:    o.Engine,
		table:     table,
		logger:    o.Logger,
		intervals: newIntervals(o.Poll),
		do:        make(chan func()),
		ctx:       ctx,
		limits:    o.Limits,
		index:     newIndex(o.Tools),
		queues:    newQueues(runtime.GOMAXPROCS(0)),
		loads:     map[*load]struct{}{},
		record:    o.Record,
		ready:     make(chan struct{}),
		listAt:    time.Now(),
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.index.before, err = precedence.Read(o.Record, o.Source.ID()); err != nil {
		r.logger.Warn("who had a path that two files want is not known any more", "error", err)
	}
	r.unready.Store(-1)
	r.unsettled.Store(true)
	return r
}

// run follows the source until the reconciler's context ends.
func (r *reconciler) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	changes := r.source.Changes()
	for r.ctx.Err() == nil {
		now := time.Now()
		if !r.listing && isDue(r.listAt, now) {
			r.list()
		}
		if isDue(r.deadline, now) {
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
		timer.Reset(time.Until(r.due(now)))
		select {
		case <-r.ctx.Done():
		case f := <-r.do:
			f()
		case _, ok := <-changes:
			if !ok {
				changes = nil
			}
			// A source that always changes is listed half of the time at most.
			r.listWithin(max(r.intervals.debounce, min(r.listTook, startDebounce)))
		case <-timer.C:
		}
	}
}

// close waits for the workers and closes all programs.
func (r *reconciler) close() {
	for r.queues.running() > 0 {
		(<-r.do)()
	}
	for l := range r.loads {
		r.endLoad(l)
	}
	r.index.close()
}

// isDue reports whether a time has come that is set.
func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// due returns when there is something to do unless something happens before.
func (r *reconciler) due(now time.Time) time.Time {
	next := now.Add(time.Hour)
	for _, at := range []time.Time{r.listAt, r.publishAt, r.deadline} {
		if !at.IsZero() && at.Before(next) && (at != r.listAt || !r.listing) {
			next = at
		}
	}
	return next
}

// listWithin has the source listed in d at the latest.
func (r *reconciler) listWithin(d time.Duration) {
	if at := time.Now().Add(d); r.listAt.IsZero() || at.Before(r.listAt) {
		r.listAt = at
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

// startDebounce is the time between two generations while the files of the first listing come in.
const startDebounce = 500 * time.Millisecond

// list has the source listed.
func (r *reconciler) list() {
	r.listing, r.listAt = true, time.Time{}
	began := time.Now()
	r.queues.add(&r.queues.lists, 0, func(ctx context.Context) func() {
		ctx, cancel := context.WithTimeoutCause(ctx, r.intervals.most, fmt.Errorf("listing it took longer than %v", r.intervals.most))
		defer cancel()
		listing, err := list(ctx, r.source)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return func() {
			r.listing, r.listTook = false, time.Since(began)
			if r.ctx.Err() == nil {
				r.reconcile(listing, err, began)
			}
		}
	})
}

// reconcile compares what the source holds with what is known of it.
func (r *reconciler) reconcile(listing *Listing, err error, now time.Time) {
	if err != nil {
		r.setProblems([]Problem{{".", err}})
		r.listWithin(r.intervals.retry)
		return
	}
	if listing.Again > 0 {
		r.listWithin(time.Until(now.Add(listing.Again)))
	}
	r.setProblems(listing.Problems)
	r.listedAt = now
	if !r.listed {
		r.listed = true
		r.begin(listing)
		return
	}
	for _, e := range listing.Entries {
		r.compare(e, now)
	}
	r.forget(listing)
}

// begin has all files of the first listing loaded.
func (r *reconciler) begin(listing *Listing) {
	r.index.starting = true
	r.index.turn = r.index.before.Turns(listing.names())
	for _, e := range listing.Entries {
		f := r.index.at(e.Name)
		f.listed = e
		if e.Err != nil {
			r.refuse(f, e.Err)
			continue
		}
		f.awaited = true
		r.awaited++
		if e.Settling == 0 {
			r.queueLoad(f)
		} else {
			r.listWithin(e.Settling)
			r.markSlow(f)
		}
	}
	r.publishSoon()
}

// A problem is one of a source, and since when it is there.
type problem struct {
	Problem
	since time.Time
}

// is reports whether a problem is the same as another one.
func (p Problem) is(other problem) bool {
	return p.Name == other.Name && p.Err.Error() == other.Err.Error()
}

// setProblems notes what is wrong with the source and its folders.
func (r *reconciler) setProblems(problems []Problem) {
	if slices.EqualFunc(problems, r.problems, Problem.is) {
		return
	}
	known := make(map[string]problem, len(r.problems))
	for _, p := range r.problems {
		known[p.Name] = p
	}
	next := make([]problem, len(problems))
	for i, p := range problems {
		next[i] = problem{p, time.Now()}
		if old, ok := known[p.Name]; ok && p.is(old) {
			next[i].since = old.since
		}
	}
	r.problems = next
	r.publishSoon()
}

// compare compares a file with what is known of it, and has it loaded once it has settled.
func (r *reconciler) compare(e Entry, now time.Time) {
	f := r.index.at(e.Name)
	f.listed = e
	if f.appeared.IsZero() {
		f.appeared = now
	}
	switch {
	case e.Err != nil && f.loading == nil:
		f.read = ""
		r.refuse(f, e.Err)
		r.decided(f)
	case e.Err == nil && f.loading == nil && e.Version == f.read && !isDue(f.retry, now):
	case e.Err == nil && f.loading != nil && e.Version == f.loading.entry.Version:
	case e.Err == nil && e.Settling > 0:
		r.listWithin(e.Settling)
		if now.Sub(f.appeared) < maxSettling { // not for as long as somebody writes
			r.settling = later(r.settling, now.Add(e.Settling))
		}
	case f.loading != nil:
		f.loading.cancel() // finish has the newer version looked at
	default:
		r.queueLoad(f)
	}
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
func (r *reconciler) forget(listing *Listing) {
	gone := false
	for name, f := range r.index.files {
		if !listing.has(name) && listing.Knows(name) {
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

// setDeadline sets how long the start waits, once it waits for nothing but what takes long, or the source stalls.
func (r *reconciler) setDeadline() {
	switch {
	case r.awaited == 0 || r.awaited > r.slow && r.stalled == 0:
		r.deadline = time.Time{}
	case r.deadline.IsZero():
		r.deadline = time.Now().Add(r.intervals.wait)
	}
}

// stopAwaiting has the start wait for no more files: each may run for as long as the sandbox lets it, and there may be thousands.
func (r *reconciler) stopAwaiting() {
	r.logger.Warn("the start does not wait for modules that take long to be read or described, or change all the time: embed their manifests with `toolsrv pack`", "files", r.awaited)
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
	if r.index.files[f.name] != f || superseded { // it is gone, or has a newer version; another may be there by now
		r.markSlow(f) // the next one may be replaced in time, too
		r.endLoad(l)
		r.listWithin(0)
		return
	}
	l.module = nil
	r.endLoad(l)
	f.read = l.entry.Version
	if f.listed.Version != f.read {
		r.listWithin(r.intervals.recheck)
	}
	if l.err == nil && m != nil {
		l.err = m.limit(r.limits)
	}
	if l.err != nil && m != nil {
		m.Close()
	}
	switch {
	case errors.Is(l.err, ErrChanged):
		f.read = ""
		r.listWithin(r.intervals.recheck)
	case l.err != nil:
		switch {
		case errors.Is(l.err, errSlow):
			f.retry = time.Now().Add(r.intervals.wait)
			r.listWithin(r.intervals.wait)
		case errors.Is(l.err, errUnreadable):
			f.read = ""
		}
		r.index.stopWaiting(f)
		r.refuse(f, l.err)
	case m == nil && (f.serving == nil || f.serving.Digest() != l.served):
		f.read = "" // what it was compared with has gone since
		r.listWithin(r.intervals.recheck)
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
	if f.refuse(err) {
		r.publishSoon()
	}
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
	r.queues.add(&r.queues.compiles, f.listed.Size, func(ctx context.Context) func() {
		err := r.guard(f.name, func() error { return m.Compile(ctx) })
		return func() {
			m.compiled = err == nil
			if err == nil || ctx.Err() != nil || f.serving != m {
				return
			}
			r.index.withdraw(f)
			r.refuse(f, err)
			r.settle()
			r.publishSoon()
		}
	})
}

// reconfigure changes limits and policy.
func (r *reconciler) reconfigure(limitsFor func(path string) limits.Limits, p wasmtools.Policy) {
	r.limits = limitsFor
	for _, f := range r.index.files {
		var memory *toolfile.MemoryError
		if errors.As(f.refused, &memory) && f.loading == nil && f.listed.Settling == 0 { // it may be taken now
			r.queueLoad(f)
		}
		if err := r.index.limit(f, limitsFor); err != nil {
			r.refuse(f, err)
		}
	}
	r.settle()
	r.table.SetPolicy(p)
	r.publish()
	r.unsettled.Store(r.adviseRetry(time.Now())) // as soon as Reconfigure returns
}
