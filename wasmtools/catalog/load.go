package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// A module is one version of one file. The reconciler's goroutine owns it.
type module struct {
	*toolfile.Module
	compiled bool
	// first tells that it came with the first scan, and described that it had to be run to be described.
	first, described bool
}

// limit gives a module's tools the limits of their paths. The error is why one of them can't run within them.
func (m *module) limit(limitsFor func(path string) limits.Limits) error {
	if err := m.Build(limitsFor); err != nil {
		return err
	}
	return m.CheckMemory()
}

// A load is one version of a file on its way: it is read, then compiled and run to be described where that is needed.
// One goroutine has it at a time.
type load struct {
	file   *file
	entry  Entry
	ctx    context.Context // ends with the catalog, and when a newer version has come
	cancel context.CancelFunc
	stage  Stage
	since  time.Time // when it was queued
	served string    // the digest of the version that was served when it began, or ""
	module *module   // nil: not read yet, or err is set, or the content has the digest served
	err    error
}

// quickDescribe is how long a module may run at first to be described. One that needs longer begins anew when those that
// don't have had their turn, so that none of them waits for it.
const quickDescribe = 500 * time.Millisecond

// queueLoad has a file loaded.
func (r *reconciler) queueLoad(f *file) {
	l := &load{file: f, entry: f.listed, stage: StageReading, since: time.Now()}
	f.retry = time.Time{}
	if f.serving != nil {
		l.served = f.serving.Digest()
	}
	l.ctx, l.cancel = context.WithCancel(r.ctx)
	f.loading = l
	r.loads[l] = struct{}{}
	r.queues.read(l.entry.Size, func(context.Context) func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.read(l)
		}()
		stall := time.NewTimer(r.intervals.stall)
		defer stall.Stop()
		select {
		case <-done:
			return func() { r.wasRead(l) }
		case <-stall.C:
		}
		if l.entry.Size >= largeFile { // it keeps its place in the queue, since it takes memory
			r.do <- func() { r.stall(l) }
			<-done
			return func() { r.stallEnded(l) }
		}
		return func() {
			r.stall(l)
			r.queues.add(&r.queues.stalled, 0, func(context.Context) func() {
				<-done
				return func() { r.stallEnded(l) }
			})
		}
	})
}

// stall notes that reading a file takes long.
func (r *reconciler) stall(l *load) {
	r.stalled++
	r.markSlow(l.file)
	r.setDeadline()
}

// stallEnded goes on with a load whose reading took long.
func (r *reconciler) stallEnded(l *load) {
	r.stalled--
	r.setDeadline()
	r.wasRead(l)
}

// errSlow tells that a file could not be read in time.
var errSlow = errors.New("reading it took too long")

// read reads a file and makes a module of it, without compiling it, on any goroutine.
func (r *reconciler) read(l *load) {
	l.err = r.guard(l.file.name, func() error {
		ctx, cancel := context.WithTimeoutCause(l.ctx, r.intervals.most, fmt.Errorf("%w (more than %v)", errSlow, r.intervals.most))
		defer cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := read(ctx, r.source, l.entry)
		if err != nil {
			return err
		}
		m, err := toolfile.Load(r.engine, content, toolfile.Place{Folder: folder(l.file.name), Source: r.source.Place(l.file.name)})
		if err != nil {
			return err
		}
		if m.Digest() == l.served {
			m.Close()
			return nil
		}
		l.module = &module{Module: m, described: m.Manifest() == nil}
		return nil
	})
}

// wasRead goes on with a load: what only has to be listed is, so that it is compiled later. A version that takes the place
// of another is compiled first, lest it can't be and the other is gone.
func (r *reconciler) wasRead(l *load) {
	if r.index.starting && !r.queues.reading() && !r.publishAt.IsZero() {
		r.publishAt = time.Now() // all that is quick is there
	}
	switch {
	case l.err != nil || l.module == nil || l.ctx.Err() != nil:
		r.finish(l)
	case l.module.described:
		r.compile(l, func() { r.describe(l, &r.queues.describes, quickDescribe) })
	case l.file.serving != nil:
		r.compile(l, func() { r.finish(l) })
	default:
		r.finish(l)
	}
}

// compile has a load compiled, and goes on with next where that went well.
func (r *reconciler) compile(l *load, next func()) {
	l.stage = StageCompiling
	r.queues.add(&r.queues.waits, l.entry.Size, func(context.Context) func() {
		l.err = r.guard(l.file.name, func() error { return l.module.Compile(l.ctx) })
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

// describe runs a load to be described, for as long as limit at most; 0: as long as the sandbox lets it.
func (r *reconciler) describe(l *load, in *queue, limit time.Duration) {
	l.stage = StageDescribing
	r.queues.add(in, l.entry.Size, func(context.Context) func() {
		ctx, cancel := l.ctx, context.CancelFunc(func() {})
		if limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		l.err = r.guard(l.file.name, func() error { return l.module.Describe(ctx) })
		late := limit > 0 && l.err != nil && ctx.Err() != nil && l.ctx.Err() == nil
		return func() {
			if late {
				l.err = nil
				r.markSlow(l.file)
				r.describe(l, &r.queues.longDescribes, 0)
				return
			}
			r.finish(l)
		}
	})
}

// guard calls f and makes an error of its panic. Parsers and compilers read strangers' bytes in it: a bug in one of
// them must cost the file, not the service.
func (r *reconciler) guard(file string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.logger.Error("loading a file panicked", "file", r.source.Place(file), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("toolsrv broke on this file: report that as a bug, with the file; the log has the details")
		}
	}()
	return f()
}
