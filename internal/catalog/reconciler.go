package catalog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/trouble"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A reconciler keeps the table in step with the sources. One goroutine, in run, owns all that changes in it. Workers list,
// read, compile and describe, and hand it their results as functions through do.
type reconciler struct {
	feeds     []*feed // the sources, in their order
	following sync.WaitGroup
	engine    *sandbox.Engine
	table     *wasmtools.RouteTable
	logger    *slog.Logger
	intervals intervals
	do        chan func()
	ctx       context.Context // ends with run

	limits  func(path string) limits.Limits
	grants  toolfile.Granter
	pins    Pins
	index   *index
	noted   precedence.Precedence // which files waited for which when that was last noted
	sharing *sharing
	queues  queues
	buffers *buffers           // shared by the feeds
	made    int64              // size in bytes of the largest bundle of a script so far, or an estimate
	loads   map[*load]struct{} // under way

	// The start waits for the files of the first listing of each source.
	listed   bool      // each source was tried, and at least one could be listed
	awaited  int       // how many files are neither served nor refused yet
	slow     int       // how many of the awaited files take long
	stalled  int       // how many reads take long, of any file
	deadline time.Time // when the start ends without the awaited files; zero while it still waits for quick ones

	unpublished *wasmtools.Configuration // a configuration that the table does not have yet, or nil
	publishAt   time.Time                // when the next generation is due; zero means nothing has changed
	published   time.Duration            // how long the last generation took to build
	fresh       []fresh                  // files that are served, but in no generation yet
	tableFailed bool                     // the table has refused the last generation

	wasIdle   bool
	unready   atomic.Int64  // how many awaited files are in no generation yet, -1 before the first listing
	ready     chan struct{} // closed when unready is 0
	idle      atomic.Bool   // the start is over, and nothing is being read or compiled
	compiled  chan struct{} // closed when idle was first set
	unsynced  atomic.Bool   // something is under way that no generation shows yet
	calmSince time.Time     // the last time when nothing was pending, or when the start was not over
	coming    coming
	settling  time.Time // until when a new file is given time to settle
}

// fresh is a file of a source, and when it changed.
type fresh struct {
	from    *feed
	changed time.Time
}

// newReconciler returns a reconciler. It may use a fraction of that many bytes of memory to load files.
func newReconciler(ctx context.Context, o Options, table *wasmtools.RouteTable, memory int64) *reconciler {
	r := &reconciler{
		feeds:     newFeeds(o.Sources, o.Rollbacks),
		engine:    o.Engine,
		table:     table,
		logger:    o.Logger,
		intervals: newIntervals(o.Poll),
		do:        make(chan func()),
		ctx:       ctx,
		limits:    o.Limits,
		grants:    o.Grants,
		pins:      o.Pins,
		index:     newIndex(o.Tools),
		queues:    newQueues(runtime.GOMAXPROCS(0), memory),
		made:      madeSize,
		loads:     map[*load]struct{}{},
		ready:     make(chan struct{}),
		compiled:  make(chan struct{}),
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	for _, f := range r.feeds {
		f.unrecorded = trouble.New(r.logger, slog.LevelWarn, "can't record which of two files has a path: after a restart the other one may get it", "can record again which of two files has a path")
	}
	var err error
	if r.index.noted, err = readRecords(r.feeds); err != nil {
		r.logger.Warn("the record of which file had which path can't be read", "error", err)
	}
	r.noted = r.index.noted
	r.sharing = newSharing(r, o.Paths)
	r.sharing.read()
	r.buffers = &buffers{most: r.queues.longReads.room / 4}
	for _, f := range r.feeds {
		f.buffers = r.buffers
	}
	r.index.isAway = r.isAway
	r.queues.lists.limit = len(r.feeds) // a source that hangs holds up no other
	r.unready.Store(-1)
	r.unsynced.Store(true)
	return r
}

// run follows the sources until the reconciler's context ends.
func (r *reconciler) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, f := range r.feeds {
		r.following.Go(func() { r.follow(r.ctx, f) })
	}
	if r.sharing.space != nil {
		r.following.Go(r.sharing.follow)
	}
	for r.ctx.Err() == nil {
		now := time.Now()
		for _, f := range r.feeds {
			if !f.listing && isDue(f.listAt, now) {
				r.list(f)
			}
		}
		if isDue(r.deadline, now) {
			r.stopAwaiting()
		}
		if isDue(r.sharing.retry, now) {
			r.sharing.write()
		}
		r.queues.start(r.ctx, r.do)
		if r.adviseRetry(now) { // must be set before a generation is published that lacks a tool which another file will bring back
			r.unsynced.Store(true)
		}
		// A single file is published at once. If many files come together, each generation takes some of them.
		if !r.publishAt.IsZero() && (len(r.loads) == 0 || !now.Before(r.publishAt)) {
			_ = r.publish() // publish has logged what is wrong
		}
		r.unsynced.Store(r.adviseRetry(now))
		r.coming.calm(r.unready.Load() == 0, r.pending(now))
		r.noteIdle()
		timer.Reset(time.Until(r.due(now)))
		select {
		case <-r.ctx.Done():
		case f := <-r.do:
			f()
		case <-timer.C:
		}
	}
}

// noteIdle notes whether everything is compiled.
func (r *reconciler) noteIdle() {
	idle := r.unready.Load() == 0 && len(r.loads) == 0 && r.publishAt.IsZero() && !r.queues.compiling()
	r.idle.Store(idle)
	if idle && !r.wasIdle {
		r.wasIdle = true
		close(r.compiled)
	}
}

// close waits for the workers and closes all programs.
func (r *reconciler) close() {
	for {
		r.queues.stalled.start(r.ctx, r.do) // these wait for a read that still runs
		if r.queues.running() == 0 {
			break
		}
		(<-r.do)()
	}
	r.following.Wait()
	for l := range r.loads {
		r.endLoad(l)
	}
	r.index.close()
}

// hand passes f to the reconciler's goroutine to call, unless that ends first.
func (r *reconciler) hand(f func()) {
	select {
	case r.do <- f:
	case <-r.ctx.Done():
	}
}

// isDue reports whether a time is set and has come.
func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// due returns when the next thing is to be done, if nothing happens before.
func (r *reconciler) due(now time.Time) time.Time {
	next := now.Add(time.Hour)
	times := []time.Time{r.publishAt, r.deadline, r.sharing.retry}
	for _, f := range r.feeds {
		if !f.listing {
			times = append(times, f.listAt)
		}
	}
	for _, at := range times {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// listWithin lists a source within d.
func (r *reconciler) listWithin(f *feed, d time.Duration) {
	if at := time.Now().Add(d); f.listAt.IsZero() || at.Before(f.listAt) {
		f.listAt = at
	}
}

// publishSoon publishes the table soon.
func (r *reconciler) publishSoon() {
	if !r.publishAt.IsZero() {
		return
	}
	wait := r.intervals.debounce
	if r.index.starting && r.queues.reading() {
		wait = startDebounce
	}
	// A generation of many tools takes a while to build. This leaves most of the time to other work.
	r.publishAt = time.Now().Add(max(wait, min(4*r.published, startDebounce)))
}

// startDebounce is the time between two generations while the files of the first listing are loaded.
const startDebounce = 500 * time.Millisecond

// reconfigure replaces the configuration. Its changes to the index are not visible before publish.
func (r *reconciler) reconfigure(to Configuration) error {
	r.limits, r.grants, r.pins = to.Limits, to.Grants, to.Pins
	for _, f := range r.feeds { // the operator who reloads may know of changes that the system did not report
		f.doubt()
	}
	for _, f := range r.index.files {
		var memory *toolfile.MemoryError
		if (errors.As(f.refused, &memory) || errors.As(f.refused, new(*PinError))) && f.loading == nil && f.listed.Settling == 0 { // the file may be accepted now
			r.queueLoad(f)
		}
		holdPins(r, f)
		if err := r.index.build(f, r.limits, r.grants); err != nil {
			r.refuse(f, err)
		}
	}
	r.promote()
	r.unpublished = &wasmtools.Configuration{Policy: to.Policy, Value: to.Value}
	err := r.publish()
	r.unsynced.Store(r.adviseRetry(time.Now())) // before Reconfigure returns
	return err
}

// decided notes that a file is served or refused, so that neither the start nor other files wait for it any longer.
func (r *reconciler) decided(f *file) {
	if len(r.index.keepers[f.key]) > 0 && f.known() {
		r.index.endWait(f.key)
		r.promote()
		r.publishSoon()
	}
	if !f.awaited {
		return
	}
	if f.slow {
		r.slow--
	}
	f.awaited, f.slow = false, false
	r.awaited--
	if r.index.starting = r.awaited > 0 || !r.listed; !r.index.starting {
		r.publishSoon()
	}
	r.setDeadline()
}

// markSlow notes that a file takes long to be served or refused.
func (r *reconciler) markSlow(f *file) {
	if f.awaited && !f.slow {
		f.slow = true
		r.slow++
		r.setDeadline()
	}
}

// setDeadline bounds how long the start waits, once it only waits for slow files and sources, or a source stalls.
func (r *reconciler) setDeadline() {
	alone := !r.listed && !slices.ContainsFunc(r.feeds, func(f *feed) bool { return f.listed }) // no source was listed, so there is nothing to serve yet
	switch {
	case alone, r.listed && r.awaited == 0, r.awaited > r.slow && r.stalled == 0:
		r.deadline = time.Time{}
	case r.deadline.IsZero():
		r.deadline = time.Now().Add(r.intervals.wait)
	}
}

// stopAwaiting ends the start without the files that it waits for. Each of them may take as long as the sandbox allows, and there may be thousands.
func (r *reconciler) stopAwaiting() {
	r.logger.Warn("not waiting for files that are slow to read or describe, or that keep changing: embed manifests with `toolsrv pack`", "files", r.awaited)
	for _, f := range r.index.files {
		r.decided(f)
	}
	for _, f := range r.feeds {
		r.noteTried(f)
	}
}

// noteTried notes that a source has been listed, or could not be. The start waits until each source has been tried and at
// least one could be listed.
func (r *reconciler) noteTried(f *feed) {
	f.tried = true
	if r.listed || slices.ContainsFunc(r.feeds, func(f *feed) bool { return !f.tried }) || !slices.ContainsFunc(r.feeds, func(f *feed) bool { return f.listed }) {
		r.setDeadline()
		return
	}
	r.listed = true
	r.index.starting = r.awaited > 0
	r.setDeadline()
	r.publishSoon()
}

// state is State, on the reconciler's goroutine.
func (r *reconciler) state() State {
	s := State{
		Published: r.published,
		Awaited:   r.awaited,
		Files:     map[Stage]int{},
	}
	for _, f := range r.feeds {
		s.Sources = append(s.Sources, SourceState{Name: f.Name, Place: f.Source.Place("."), Listed: f.listedAt, ListTook: f.listTook, Files: map[Stage]int{}, Problems: len(f.problems), Served: f.served.Sum()})
		if len(f.problems) > 0 {
			s.Sources[len(s.Sources)-1].Wrong = f.problems[0].Err
		}
		for _, p := range f.problems {
			s.Refused = append(s.Refused, Refused{Source: f.place(p.Name), Err: p.Err, Since: p.since})
		}
	}
	for _, f := range r.index.files {
		stage := f.stage()
		s.Files[stage]++
		from := &s.Sources[slices.Index(r.feeds, f.from)]
		from.Files[stage]++
		if f.serving != nil {
			s.Served++
			from.Serving++
		}
		if f.loading != nil {
			s.Loading = append(s.Loading, Loading{Source: f.place(), Stage: stage, Since: f.loading.since})
		}
		if f.refused != nil {
			s.Refused = append(s.Refused, Refused{f.place(), f.refused, f.refusedSince, f.waiting != nil, f.serving != nil})
		}
	}
	slices.SortFunc(s.Loading, func(a, b Loading) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Source, b.Source)) })
	s.Loading = s.Loading[:min(len(s.Loading), maxLoading)]
	slices.SortStableFunc(s.Refused, func(a, b Refused) int { return strings.Compare(a.Source, b.Source) })
	return s
}

func (r *reconciler) files() []FileState {
	all := make([]FileState, 0, len(r.index.files))
	for _, f := range r.index.files {
		all = append(all, f.state())
	}
	slices.SortFunc(all, func(a, b FileState) int { return strings.Compare(a.Source, b.Source) })
	return all
}
