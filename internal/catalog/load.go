package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A module is one version of a file. The reconciler's goroutine owns it.
type module struct {
	*toolfile.Module
	content   string // the digest of the file; for a script, of its own file
	compiled  bool
	first     bool // the file was in the first listing
	described bool // the file has no manifest section, so it is run to describe itself
	shown     bool // the table may still have it, although it waits
}

// build gives the module's tools their limits and grants. The error says why a tool can't run within its limits.
func (m *module) build(limitsFor func(path string) limits.Limits, granter toolfile.Granter) error {
	before := m.Tools()
	if err := m.Build(limitsFor, granter); err != nil {
		return err
	}
	if after := m.Tools(); len(before) > 0 && &before[0] == &after[0] { // they were checked
		return nil
	}
	return m.CheckMemory()
}

// A load is the loading of one version of a file. The file is read and, if necessary, compiled and run before it is served. One goroutine owns the
// load at a time.
type load struct {
	file    *file
	entry   Entry
	ctx     context.Context // ends with the catalog, and when there is a newer version
	cancel  context.CancelFunc
	stage   Stage
	since   time.Time // when it was queued
	served  string    // the digest of the version that was served when the load began, or ""
	module  *module   // nil if the file has not been read yet, if err is set, or if the content is the served one
	content string    // the digest of the file that was read
	err     error
	wants   []string // namespaces that the file's tools may have
	weight  int64    // how many bytes of memory the load may take
}

// folder returns the folder of the file.
func (l *load) folder() *folder { return l.file.from.folder(l.file.name) }

// isLarge reports whether a load is one of those whose total weight the queue bounds.
func (r *reconciler) isLarge(l *load) bool {
	return l.entry.cost() >= largeFile || l.weight > r.queues.smallRoom()
}

// contentCopies is how many times a file's content is in memory while it is loaded.
const contentCopies = 3

// manifestRoom is how many bytes of memory the manifest of a large file may take. Only reading shows how many it needs. If it needs more, the file is
// read a second time.
const manifestRoom = 2 << 20

// quickLoad is how long reading a file, and its first run to describe it, may take without being late. A module that needs longer starts again after
// the quick ones, so that none of them waits for it.
const quickLoad = 500 * time.Millisecond

// queueLoad queues the load of a file.
func (r *reconciler) queueLoad(f *file) {
	l := &load{file: f, entry: f.listed, stage: StageReading, since: time.Now(), wants: f.namespaces()}
	r.coming.begin(l.wants)
	f.from.open[f.name] = true // until a listing finds nothing left to do
	f.retry = time.Time{}
	if f.serving != nil {
		l.served = f.serving.Digest()
	}
	l.ctx, l.cancel = context.WithCancel(r.ctx)
	f.loading = l
	r.loads[l] = struct{}{}
	// How much memory a small file or a script takes is known once it is read.
	l.weight = r.queues.smallRoom()
	switch room := r.queues.longReads.room; {
	case l.entry.Kind == Script:
		l.weight = min(contentCopies*r.made, room)
	case l.entry.Size > sandbox.MaxModule: // refused without reading it
	case l.entry.Size >= largeFile:
		if l.weight = contentCopies * l.entry.Size; l.weight > room {
			l.err, l.weight = &toolfile.NeedError{Needs: l.weight, Most: room}, 0 // the file is not read at all
		} else {
			l.weight = min(l.weight+manifestRoom, room)
		}
	}
	r.readWithin(l)
}

// readWithin queues the reading of a file, which may take as much memory as the load's weight.
func (r *reconciler) readWithin(l *load) {
	r.queues.read(l.file.from, l.folder(), l.entry.cost(), l.weight, func(context.Context) func() {
		done, began := make(chan struct{}), time.Now()
		go func() {
			defer close(done)
			r.read(l)
		}()
		stall := time.NewTimer(r.intervals.stall)
		defer stall.Stop()
		select {
		case <-done:
			late := time.Since(began) > quickLoad
			return func() {
				if late {
					r.queues.late(l.folder())
				}
				r.wasRead(l)
			}
		case <-stall.C:
		}
		if r.isLarge(l) { // a large load stays in its queue, since it holds much memory
			var end func()
			r.do <- func() {
				r.stall(l)
				end = r.queues.longReads.stall(l.file.from)
			}
			<-done
			return func() {
				end()
				r.stallEnded(l)
			}
		}
		return func() {
			r.stall(l)
			r.queues.add(&r.queues.stalled, l.file.from, l.folder(), 0, func(context.Context) func() {
				<-done
				return func() { r.stallEnded(l) }
			})
		}
	})
}

// stall notes that reading a file takes long.
func (r *reconciler) stall(l *load) {
	r.queues.late(l.folder())
	r.stalled++
	l.file.from.stalled++
	r.markSlow(l.file)
	r.setDeadline()
}

// stallEnded continues with a load whose reading took long.
func (r *reconciler) stallEnded(l *load) {
	r.stalled--
	l.file.from.stalled--
	r.setDeadline()
	r.wasRead(l)
}

// errSlow means that a file could not be read in time.
var errSlow = errors.New("reading it took too long")

// read reads a file and makes a module of it, without compiling it, on any goroutine.
func (r *reconciler) read(l *load) {
	if l.err != nil { // it needs too much memory
		return
	}
	if r.isLarge(l) {
		defer r.engine.Claim(l.weight)()
	}
	l.err = r.guard(l.file, func() error {
		ctx, cancel := context.WithTimeoutCause(l.ctx, r.intervals.timeout, fmt.Errorf("%w (more than %v)", errSlow, r.intervals.timeout))
		defer cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		m, content, err := l.file.from.load(ctx, l.entry, r.engine, toolfile.Place{Replaces: l.served != "", Most: l.weight})
		if err != nil {
			return err
		}
		l.content = content
		if m.Digest() == l.served {
			m.Close()
			return nil
		}
		l.module = &module{Module: m, content: content, described: m.Describes()}
		return nil
	})
}

// wasRead continues a load after reading. A new file is served at once and compiled later. A version that replaces another one is compiled first, so
// that the old one stays if that fails.
func (r *reconciler) wasRead(l *load) {
	if r.index.starting && !r.queues.reading() && !r.publishAt.IsZero() {
		r.publishAt = time.Now() // all quick ones are done
	}
	if r.queues.longReads.running == 0 && r.queues.longReads.waiting() == 0 {
		r.buffers.drop()
	}
	if l.module != nil && l.entry.Kind == Script {
		r.made = max(r.made, l.module.Size())
	}
	switch {
	case r.needsMore(l):
		l.err = nil
		r.readWithin(l)
	case l.err != nil || l.module == nil || l.ctx.Err() != nil:
		r.finish(l)
	case l.module.Manifest() == nil:
		r.compile(l, func() { r.describe(l, &r.queues.describes, quickLoad) })
	case l.file.serving != nil:
		r.compile(l, func() { r.finish(l) })
	default:
		r.finish(l)
	}
}

// needsMore reports whether a load failed for lack of memory that another kind of load may have. If so, it starts again as that kind. So no load
// waits for memory while it holds some.
func (r *reconciler) needsMore(l *load) bool {
	var need *toolfile.NeedError
	if !errors.As(l.err, &need) || l.ctx.Err() != nil || need.Needs <= l.weight {
		return false
	}
	if room := r.queues.longReads.room; need.Needs > room {
		l.err = &toolfile.NeedError{Needs: need.Needs, Most: room}
		return false
	}
	l.weight = need.Needs
	return true
}

// compile compiles a load's module, and then calls next if that succeeded.
func (r *reconciler) compile(l *load, next func()) {
	l.stage = StageCompiling
	r.queues.add(&r.queues.waits, l.file.from, l.folder(), l.entry.Size, func(context.Context) func() {
		l.err = r.guard(l.file, func() error { return l.module.Compile(l.ctx) })
		return func() {
			if l.err != nil || l.ctx.Err() != nil {
				r.finish(l)
				return
			}
			l.module.compiled = true
			next()
		}
	})
}

// describe runs a load's module to get its description. The run may last for limit, or, if limit is 0, for as long as the sandbox
// allows.
func (r *reconciler) describe(l *load, in *queue, limit time.Duration) {
	l.stage, l.weight = StageDescribing, r.queues.smallRoom()
	l.module.Allow(l.weight)
	r.queues.add(in, l.file.from, l.folder(), l.entry.Size, func(context.Context) func() {
		ctx, cancel := l.ctx, context.CancelFunc(func() {})
		if limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		l.err = r.guard(l.file, func() error { return l.module.Describe(ctx) })
		late := limit > 0 && l.err != nil && ctx.Err() != nil && l.ctx.Err() == nil
		return func() {
			if r.needsMore(l) {
				l.err = nil
				r.takeSaid(l)
				return
			}
			if late {
				l.err = nil
				r.queues.late(l.folder())
				r.markSlow(l.file)
				r.describe(l, &r.queues.longDescribes, 0)
				return
			}
			r.finish(l)
		}
	})
}

// takeSaid continues a load with its description, which may take as much memory as the load's weight.
func (r *reconciler) takeSaid(l *load) {
	r.queues.read(l.file.from, l.folder(), l.entry.Size, l.weight, func(context.Context) func() {
		defer r.engine.Claim(l.weight)()
		l.module.Allow(l.weight)
		l.err = r.guard(l.file, func() error { return l.module.Describe(l.ctx) })
		return func() { r.finish(l) }
	})
}

// finish ends a load: the module is served, the file is refused, or the load is tried again.
func (r *reconciler) finish(l *load) {
	f, m := l.file, l.module
	superseded := l.ctx.Err() != nil
	if r.index.files[f.key] != f || superseded { // the file is gone, or has a newer version
		r.endLoad(l)
		r.readAgain(f, 0)
		return
	}
	l.module = nil
	r.endLoad(l)
	if f.read != l.entry.Version {
		f.read, f.passing = l.entry.Version, 0
	}
	if f.listed.Version != f.read || l.entry.Kind == Script && f.from.scripts.outdated(f.name) {
		r.listWithin(f.from, r.intervals.recheck)
	}
	if l.err == nil && m != nil {
		if l.err = f.from.binding.check(m.Module); l.err == nil {
			l.err = pinned(r.pins, f.name, m.Digest(), m.Paths())
		}
	}
	if l.err == nil && m != nil {
		l.err = m.build(r.limits, r.grants)
	}
	if l.err != nil && m != nil {
		m.Close()
	}
	if errors.As(l.err, new(*sandbox.RoomError)) || errors.As(l.err, new(*toolfile.RoomError)) {
		if r.index.freed { // a module was closed, perhaps since this load began
			r.publishSoon()
		}
	} else if l.err != nil { // this load may have kept others out meanwhile
		r.index.freed = true
	}
	overtaken := errors.Is(l.err, ErrChanged)
	if l.err == nil && m == nil { // the content is served already
		overtaken = f.serving == nil || f.serving.Digest() != l.served
	}
	if overtaken {
		f.read = ""
		r.readAgain(f, r.intervals.recheck)
		return
	}
	changed := f.changed
	f.overtaken, f.changed = time.Time{}, time.Time{}
	switch {
	case l.err != nil:
		switch {
		case errors.As(l.err, new(*PassingError)):
			wait := r.intervals.retry << min(f.passing, mostDoubled)
			f.passing++
			f.retry = time.Now().Add(wait)
			r.listWithin(f.from, wait)
		case errors.Is(l.err, errSlow), lacked(l.err):
			f.retry = time.Now().Add(r.intervals.wait)
			r.listWithin(f.from, r.intervals.wait)
		case errors.Is(l.err, errUnreadable):
			f.read = ""
			r.listWithin(f.from, r.intervals.wait)
		}
		r.index.stopWaiting(f)
		r.refuse(f, l.err)
	case m == nil:
		r.index.edits.Add(1)
		f.serving.content = l.content // a script's content may have changed although its module is the same
		r.index.stopWaiting(f)
		r.refuse(f, nil)
	default:
		m.first = f.awaited
		if r.index.offer(f, m) {
			r.serve(f)
			if !changed.IsZero() {
				r.fresh = append(r.fresh, fresh{f.from, changed})
			}
		}
		r.promote()
		r.publishSoon()
	}
	r.decided(f)
}

// mostDoubled is how often the pause before the next try is doubled while a file can't be loaded: up to some eight minutes.
const mostDoubled = 10

// readAgain reads a file again after the next listing, which is due within d, because the file changed while it was loaded. Until then it is neither
// served nor refused: the start continues to wait for it, and clients are asked to wait for its tools. Both waits are bounded, even if somebody keeps
// writing.
func (r *reconciler) readAgain(f *file, d time.Duration) {
	r.listWithin(f.from, d)
	if r.index.files[f.key] != f { // the file is gone
		return
	}
	r.markSlow(f) // the newer version, too, may be replaced before it is known
	now := time.Now()
	if f.overtaken.IsZero() {
		f.overtaken = now
	}
	if until := f.overtaken.Add(maxSettling); now.Before(until) {
		r.settling = later(r.settling, until)
		r.coming.expect(f.namespaces(), until)
	}
}

// lacked reports whether a file could not be described because other runs and compilations were using the memory at the time.
func lacked(err error) bool {
	failed, ok := errors.AsType[*sandbox.Error](err)
	return ok && failed.Outcome == sandbox.Overloaded
}

// refuse notes why the newest version of a file is not served; nil means that it is. An older version that is served stays.
func (r *reconciler) refuse(f *file, err error) {
	if f.refuse(err) {
		r.publishSoon()
	}
}

// retryCrowded reads files again for whose manifests there was no room. It reads only as many as may have room now.
func (r *reconciler) retryCrowded() {
	if !r.index.freed {
		return
	}
	r.index.freed = false
	manifests, sources := r.engine.ManifestUse(), r.engine.SourceUse()
	for _, f := range r.index.files {
		if f.refused == nil || f.listed.Settling > 0 {
			continue
		}
		use, needs := &manifests, int64(0)
		if crowded, ok := errors.AsType[*toolfile.RoomError](f.refused); ok {
			needs = crowded.Needs
		} else if crowded, ok := errors.AsType[*sandbox.RoomError](f.refused); ok {
			use, needs = &sources, crowded.Needs
		} else {
			continue
		}
		if f.loading != nil { // it may have started before there was room
			r.index.freed = true
			continue
		}
		if use.Held += needs; use.Held <= use.Limit { // only as many files as fit together
			r.queueLoad(f)
		}
	}
}

// promote serves the files that waited for a path that is free now.
func (r *reconciler) promote() {
	for _, f := range r.index.promote() {
		r.serve(f)
	}
}

// serve compiles a file's module in the background. A module that can't be compiled is withdrawn.
func (r *reconciler) serve(f *file) {
	m := f.serving
	r.coming.expect(m.namespaces(nil), time.Time{})
	if m == nil || m.compiled {
		return
	}
	r.queues.add(&r.queues.compiles, f.from, f.from.folder(f.name), f.listed.Size, func(ctx context.Context) func() {
		err := r.guard(f, func() error { return m.Compile(ctx) })
		return func() {
			m.compiled = err == nil
			if err == nil || ctx.Err() != nil || f.serving != m {
				return
			}
			r.index.withdraw(f)
			r.refuse(f, err)
			r.promote()
			r.publishSoon()
		}
	})
}

// endLoad ends a load.
func (r *reconciler) endLoad(l *load) {
	l.cancel()
	if delete(r.loads, l); len(r.loads) == 0 {
		for _, f := range r.feeds {
			f.folders = nil
		}
	}
	r.coming.end(l.wants)
	if l.file.loading == l {
		l.file.loading = nil
	}
	if l.module != nil {
		l.module.Close()
		r.index.freed = true
	}
}

// guard calls f and turns a panic into an error. In f, parsers and compilers read untrusted bytes: a bug in one of them must cost the file, not the
// service.
func (r *reconciler) guard(file *file, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.logger.Error("loading a file panicked", "file", file.place(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("this file made toolsrv panic: report that as a bug, with the file; the log has the details")
		}
	}()
	return f()
}
