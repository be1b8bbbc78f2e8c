package catalog

import "time"

// begin has all files of the first listing loaded.
func (r *reconciler) begin(listing *Listing) {
	r.index.starting = true
	r.index.noted, r.index.turn = r.index.before, r.index.before.Turns(listing.names())
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

// decided notes that a file is served or refused, so that neither the start nor other files wait for it any longer.
func (r *reconciler) decided(f *file) {
	if len(r.index.keepers[f.name]) > 0 && f.known() {
		r.index.endWait(f.name)
		r.settle()
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
	if r.index.starting = r.awaited > 0; !r.index.starting {
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

// setDeadline bounds how long the start waits, once it waits for slow files only, or the source stalls.
func (r *reconciler) setDeadline() {
	switch {
	case r.awaited == 0 || r.awaited > r.slow && r.stalled == 0:
		r.deadline = time.Time{}
	case r.deadline.IsZero():
		r.deadline = time.Now().Add(r.intervals.wait)
	}
}

// stopAwaiting ends the start without the files that it waits for. Each may take as long as the sandbox lets it run, and there
// may be thousands.
func (r *reconciler) stopAwaiting() {
	r.logger.Warn("the start does not wait for files that take long to be read or described, or change all the time: embed manifests with `toolsrv pack`", "files", r.awaited)
	for _, f := range r.index.files {
		r.decided(f)
	}
}
