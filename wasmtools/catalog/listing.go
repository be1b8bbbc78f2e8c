package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// list has the source listed.
func (r *reconciler) list() {
	r.listing, r.listAt = true, time.Time{}
	began := time.Now()
	r.queues.add(&r.queues.lists, 0, func(ctx context.Context) func() {
		ctx, cancel := context.WithTimeoutCause(ctx, r.intervals.timeout, fmt.Errorf("listing it took longer than %v", r.intervals.timeout))
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

// reconcile takes up a listing, which began at now, or the error of one.
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
	case e.Err == nil && f.loading == nil && e.Version == f.read && !isDue(f.retry, now): // known
		if !f.retry.IsZero() {
			r.listWithin(time.Until(f.retry))
		}
	case e.Err == nil && f.loading != nil && e.Version == f.loading.entry.Version: // on its way
	case e.Err == nil && e.Settling > 0:
		r.listWithin(e.Settling)
		if now.Sub(f.appeared) < maxSettling { // not for as long as somebody writes
			if strings.HasSuffix(e.Name, ".wasm") {
				r.engine.Expect() // the wait is time enough to start
			}
			r.settling = later(r.settling, now.Add(e.Settling))
			r.coming.expect(f.namespaces(), now.Add(e.Settling))
		}
	case f.loading != nil:
		f.loading.cancel() // finish has the source listed again
	default:
		r.queueLoad(f)
	}
}

// maxSettling is how long clients are asked to wait for the tools of a new file that has not settled, or of one that changes while it is read.
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

// A problem is one of the source, and since when it is known.
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
