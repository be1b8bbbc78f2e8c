package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// list lists a source.
func (r *reconciler) list(f *feed) {
	f.listing, f.listAt = true, time.Time{}
	began := time.Now()
	r.queues.add(&r.queues.lists, f, nil, 0, func(ctx context.Context) func() {
		ctx, cancel := context.WithTimeoutCause(ctx, r.intervals.timeout, fmt.Errorf("listing it took longer than %v", r.intervals.timeout))
		defer cancel()
		listing, err := f.list(ctx, r.intervals.recheck)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return func() {
			f.listing, f.listTook = false, time.Since(began)
			if r.ctx.Err() == nil {
				r.reconcile(f, listing, err, began)
			}
		}
	})
}

// reconcile applies a listing of a source that began at now, or its error.
func (r *reconciler) reconcile(f *feed, listing *Listing, err error, now time.Time) {
	if err != nil {
		r.setProblems(f, []Problem{{".", err}})
		r.listWithin(f, r.intervals.retry<<min(f.failed, mostFailed))
		f.failed++
		r.noteTried(f)
		return
	}
	if listing.Again > 0 {
		r.listWithin(f, time.Until(now.Add(listing.Again)))
	}
	r.setProblems(f, listing.Problems)
	f.listedAt, f.failed = now, 0
	first := !f.listed
	f.listed = true
	if !r.listed {
		if first {
			r.begin(f, listing)
		}
		r.noteTried(f)
		if first {
			return
		}
	}
	room := f.most() - f.files
	whole := !listing.Partial && len(listing.Problems) == 0 // otherwise files that are missing from it stay
	some := whole && listing.Since != 0 && listing.Since == f.number
	f.number = 0
	if whole {
		f.number = listing.Number
	}
	for _, e := range listing.Entries {
		if some && e.Kind != Script && !listing.Only[e.ID] && !f.open[e.ID] {
			continue
		}
		if r.index.files[f.key(e.ID)] == nil {
			if room--; room < 0 && !whole {
				continue
			}
		}
		r.compare(f, e, now)
	}
	if !whole || f.files != len(listing.Entries) { // every entry is one of the source's files
		r.forget(f, listing, some)
	}
	if first {
		r.endAway(f)
	}
}

// These bound what is used of a listing.
const (
	leastParts   = 100_000
	mostProblems = 1000
)

// bound shortens a listing that has more than most files, and adds a problem that says so.
func bound(l *Listing, most int) {
	files, all := 0, max(leastParts, 10*most)
	at := slices.IndexFunc(l.Entries, func(e Entry) bool {
		if e.Kind != Part {
			files++
		}
		all--
		return files > most || all < 0
	})
	if len(l.Problems) > mostProblems {
		l.Problems, l.Partial = append(slices.Clip(l.Problems[:mostProblems]), Problem{".", fmt.Errorf("it has problems with %d more folders", len(l.Problems)-mostProblems)}), true
	}
	if at >= 0 {
		l.Entries, l.Partial = l.Entries[:at:at], true
		l.Problems = append(slices.Clip(l.Problems), Problem{".", fmt.Errorf("it lists more than %d modules and scripts, or too many files for scripts: the rest is not served", most)})
	}
}

// mostFailed is how often the pause before the next try is doubled while a source can't be listed: up to four seconds.
const mostFailed = 3

// at returns the source's file with a name.
func (r *reconciler) at(from *feed, name string) *file {
	f := r.index.at(from.key(name))
	if f.from == nil { // otherwise a worker may be reading it
		f.from, f.name = from, name
		from.files++
	}
	return f
}

// compare compares a file with what is known of it, and queues its load once it has settled.
func (r *reconciler) compare(from *feed, e Entry, now time.Time) {
	f := r.at(from, e.ID)
	f.listed = e
	if f.appeared.IsZero() {
		f.appeared = now
	}
	if f.changed.IsZero() && !f.awaited && e.Version != f.read {
		f.changed = now
	}
	from.open[f.name] = true
	switch {
	case e.Err != nil && f.loading == nil:
		delete(from.open, f.name)
		f.read = ""
		r.refuse(f, e.Err)
		r.decided(f)
	case e.Err == nil && f.loading == nil && e.Version == f.read && !isDue(f.retry, now): // known
		delete(from.open, f.name)
		if !f.retry.IsZero() {
			from.open[f.name] = true
			r.listWithin(from, time.Until(f.retry))
		}
	case e.Err == nil && f.loading != nil && e.Version == f.loading.entry.Version: // this version is being loaded
	case e.Err == nil && e.Settling > 0:
		r.listWithin(from, e.Settling)
		if now.Sub(f.appeared) < maxSettling { // but not endlessly while somebody writes
			if strings.HasSuffix(e.ID, ".wasm") {
				r.engine.Expect() // the compile helper can start during the wait
			}
			r.settling = later(r.settling, now.Add(e.Settling))
			r.coming.expect(f.namespaces(), now.Add(e.Settling))
		}
	case f.loading != nil:
		f.loading.cancel() // finish will list the source again
	default:
		r.queueLoad(f)
	}
}

// maxSettling is how long clients are asked to wait for the tools of a file that is new and has not settled, or that changes while it is read.
const maxSettling = time.Second

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// forget drops the files of a source that are gone. If some is true, it looks only at those in Only.
func (r *reconciler) forget(from *feed, listing *Listing, some bool) {
	among := r.index.files
	if some {
		among = map[string]*file{}
		for name := range listing.Only {
			if f := r.index.files[from.key(name)]; f != nil {
				among[f.key] = f
			}
		}
	}
	gone := false
	for _, f := range among {
		if f.from == from && !listing.has(f.name) && listing.Knows(f.name) {
			if f.loading != nil {
				f.loading.cancel()
			}
			r.decided(f)
			r.index.remove(f)
			from.files--
			delete(from.open, f.name)
			gone = true
		}
	}
	if gone {
		r.promote()
		r.publishSoon()
	}
}

// A problem is a problem of the source, and the time when it was first seen.
type problem struct {
	Problem
	since time.Time
}

// is reports whether a problem is the same as another one.
func (p Problem) is(other problem) bool {
	return p.Name == other.Name && p.Err.Error() == other.Err.Error()
}

// setProblems notes the problems of a source and its folders.
func (r *reconciler) setProblems(f *feed, problems []Problem) {
	if slices.EqualFunc(problems, f.problems, Problem.is) {
		return
	}
	known := make(map[string]problem, len(f.problems))
	for _, p := range f.problems {
		known[p.Name] = p
	}
	next := make([]problem, len(problems))
	for i, p := range problems {
		next[i] = problem{p, time.Now()}
		if old, ok := known[p.Name]; ok && p.is(old) {
			next[i].since = old.since
		}
	}
	f.problems = next
	r.publishSoon()
}

// begin queues the loads of all files in the first listing of a source.
func (r *reconciler) begin(from *feed, listing *Listing) {
	r.index.starting = true
	for _, e := range listing.Entries {
		r.at(from, e.ID).listed = e
	}
	r.order()
	r.endAway(from)
	for _, e := range listing.Entries {
		f := r.at(from, e.ID)
		if e.Err != nil {
			r.refuse(f, e.Err)
			continue
		}
		f.awaited = true
		r.awaited++
		if e.Settling == 0 {
			r.queueLoad(f)
		} else {
			r.listWithin(from, e.Settling)
			r.markSlow(f)
		}
	}
	r.publishSoon()
}

// order makes files get their paths at the start in the order that the records give.
func (r *reconciler) order() {
	r.index.turn = r.index.noted.Turns(slices.Collect(maps.Keys(r.index.files)))
}

// endAway is called when all files of a source are known: other files stop waiting for those that the source no longer has.
func (r *reconciler) endAway(from *feed) {
	for key := range r.index.keepers {
		if r.index.files[key] == nil && strings.HasPrefix(key, from.prefix) {
			r.index.endWait(key)
		}
	}
	r.promote()
	r.publishSoon()
}

// follow lists a source when it reports a change, until ctx ends.
func (r *reconciler) follow(ctx context.Context, f *feed) {
	changes := f.Source.Changes()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-changes:
			if !ok {
				return
			}
		}
		r.hand(func() {
			// If a source changes all the time, listing it takes at most half of the time.
			r.listWithin(f, max(r.intervals.debounce, min(f.listTook, startDebounce)))
		})
	}
}

// isAway reports whether a file belongs to a source that has never been listed.
func (r *reconciler) isAway(key string) bool {
	return slices.ContainsFunc(r.feeds, func(f *feed) bool { return !f.listed && strings.HasPrefix(key, f.prefix) })
}
