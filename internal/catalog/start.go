package catalog

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// begin has all files of the first listing of a source loaded.
func (r *reconciler) begin(from *feed, listing *Listing) {
	r.index.starting = true
	for _, e := range listing.Entries {
		r.at(from, e.ID).listed = e
	}
	r.index.turn = r.index.noted.Turns(slices.Collect(maps.Keys(r.index.files)))
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

// markSlow notes that it takes long until a file is served or refused.
func (r *reconciler) markSlow(f *file) {
	if f.awaited && !f.slow {
		f.slow = true
		r.slow++
		r.setDeadline()
	}
}

// endAway notes that a source's files are known: no other file waits for one that is gone.
func (r *reconciler) endAway(from *feed) {
	for key := range r.index.keepers {
		if r.index.files[key] == nil && strings.HasPrefix(key, from.prefix) {
			r.index.endWait(key)
		}
	}
	r.promote()
	r.publishSoon()
}

// setDeadline bounds how long the start waits, once it waits for slow files and sources only, or a source stalls.
func (r *reconciler) setDeadline() {
	alone := !r.listed && !slices.ContainsFunc(r.feeds, func(f *feed) bool { return f.listed }) // there is nothing else to be ready with
	switch {
	case alone, r.listed && r.awaited == 0, r.awaited > r.slow && r.stalled == 0:
		r.deadline = time.Time{}
	case r.deadline.IsZero():
		r.deadline = time.Now().Add(r.intervals.wait)
	}
}

// stopAwaiting ends the start without the files that it waits for. Each may take as long as the sandbox lets it run, and there
// may be thousands.
func (r *reconciler) stopAwaiting() {
	r.logger.Warn("the start does not wait for files that are slow to read or describe, or that keep changing: embed manifests with `toolsrv pack`", "files", r.awaited)
	for _, f := range r.index.files {
		r.decided(f)
	}
	for _, f := range r.feeds {
		r.noteTried(f)
	}
}
