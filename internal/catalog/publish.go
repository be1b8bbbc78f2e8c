package catalog

import (
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// pending reports whether some tools may not be in a generation yet.
func (r *reconciler) pending(now time.Time) bool {
	return !r.listed || len(r.loads) > 0 || !r.publishAt.IsZero() || now.Before(r.settling)
}

// adviseRetry reports whether clients of a path without a tool should try again: while tools are pending, but after the start for at most half a
// minute, even if files keep coming or take long. Without this bound a client with a misspelt path would never be told that there is no such tool.
func (r *reconciler) adviseRetry(now time.Time) bool {
	pending := r.pending(now)
	if !pending || r.unready.Load() != 0 {
		r.calmSince = now
	}
	return pending && now.Sub(r.calmSince) < r.intervals.wait
}

// publish puts the tools that the index serves into the table, together with the new configuration if there is one. It logs what has changed, and
// closes what is no longer served.
func (r *reconciler) publish() error {
	began := time.Now()
	r.writeRecords() // before the table shows which files have paths
	r.publishAt = time.Time{}
	var refused []wasmtools.Refusal
	for _, f := range r.feeds {
		for _, p := range f.problems {
			refused = append(refused, wasmtools.Refusal{Source: f.place(p.Name), Err: p.Err})
		}
	}
	for _, f := range r.index.refused() {
		refused = append(refused, wasmtools.Refusal{Source: f.place(), Err: f.refused})
	}
	before := r.table.Current()
	replace := r.table.Replace
	if c := r.unpublished; c != nil { // the tools in the index were made for this configuration
		replace = func(tools []*wasmtools.Tool, refused []wasmtools.Refusal) error {
			return r.table.Configure(tools, refused, *c)
		}
	}
	next := r.index.tools.all()
	if len(r.loads) > 0 || began.Before(r.settling) { // otherwise no path can come back
		r.coming.leave(before, next)
	}
	err := replace(next, refused)
	if err != nil {
		r.logger.Error("the route table refuses the new tools: keeping the old ones", "error", err)
		r.tableFailed = true
	} else {
		if r.tableFailed {
			r.tableFailed = false
			r.logger.Info("the route table accepts new tools again")
		}
		r.unpublished = nil
		r.coming.published()
		r.logChanges(before, r.table.Current())
		for _, f := range r.fresh {
			f.from.served.Add(time.Since(f.changed))
		}
		r.fresh = nil
		r.index.closeOutgoing()
		r.retryCrowded()
	}
	r.published = time.Since(began)
	if r.listed && r.unready.Swap(int64(r.awaited)) != 0 && r.awaited == 0 {
		close(r.ready)
	}
	return err
}

// logChanges logs each tool that was added, replaced or removed, and each file that is refused for a new reason.
func (r *reconciler) logChanges(before, after *wasmtools.Generation) {
	was := before.Routes()
	removed := func(route wasmtools.Route) {
		r.logger.Info("tool removed", "path", route.Path, "file", route.Tool.Source)
	}
	for _, route := range after.Routes() { // both are sorted by path
		for ; len(was) > 0 && was[0].Path < route.Path; was = was[1:] {
			removed(was[0])
		}
		var old wasmtools.Route
		if len(was) > 0 && was[0].Path == route.Path {
			old, was = was[0], was[1:]
		}
		if old.Tool == route.Tool {
			continue
		}
		t, what := route.Tool, "tool added"
		r.logMissing(old, route)
		if old.Tool != nil {
			if old.Tool.Digest == t.Digest && old.Tool.Source == t.Source {
				continue
			}
			what = "tool replaced"
		}
		r.logger.Info(what, "path", route.Path, "file", t.Source, "version", t.Version, "digest", text.ShortDigest(t.Digest))
	}
	for _, route := range was {
		removed(route)
	}
	r.logRefused(before, after)
}

// logRefused logs each file that is refused for a new reason, and each file that is no longer refused because it is served or gone.
func (r *reconciler) logRefused(before, after *wasmtools.Generation) {
	known, still := map[string]string{}, map[string]bool{}
	for _, refusal := range before.Refused() {
		known[refusal.Source] = refusal.Err.Error()
	}
	for _, refusal := range after.Refused() {
		still[refusal.Source] = true
		if why := refusal.Err.Error(); known[refusal.Source] != why {
			r.logger.Warn("file refused", "file", refusal.Source, "reason", why)
		}
	}
	for _, refusal := range before.Refused() {
		if !still[refusal.Source] {
			r.logger.Info("file no longer refused", "file", refusal.Source)
		}
	}
}

// logMissing logs that a tool lacks a grant that it needs, or no longer lacks one. It logs only changes: old is the previous route, if there was one.
func (r *reconciler) logMissing(old, route wasmtools.Route) {
	lacked := old.Tool != nil && len(old.Tool.Missing) > 0
	switch missing := route.Tool.Missing; {
	case len(missing) > 0 && (!lacked || !slices.Equal(old.Tool.Missing, missing)):
		r.logger.Warn("a tool lacks a grant and can't be called: see `toolsrv inspect` for the [[grant]]", "path", route.Path,
			"file", route.Tool.Source, "missing", lacking.Of(route.Tool))
	case len(missing) == 0 && lacked:
		r.logger.Info("a tool now has the grants that it needs", "path", route.Path, "file", route.Tool.Source)
	}
}

// note notes which files now wait for which. Until the start is over, that is not known.
func (r *reconciler) note() {
	now := r.index.precedence()
	for key, holders := range r.index.noted {
		if r.isAway(key) { // it may still be waiting
			now[key] = holders
		}
	}
	if now.Equal(r.noted) {
		return
	}
	ended := r.noted.Without(now)
	r.noted = now
	r.index.noted = r.index.noted.Without(ended).With(now)
	r.sharing.end(ended, now)
}

// writeRecords records which files wait for which, in the record of each source for which that has changed, and in the record that servers share. If
// the other servers have decided differently before, it makes the files change places. It does nothing during the start.
func (r *reconciler) writeRecords() {
	if !r.listed || r.awaited > 0 {
		return
	}
	r.note()
	if r.sharing.space != nil {
		if taken := r.index.agree(); taken != nil {
			for _, f := range taken {
				r.serve(f)
			}
			r.publishSoon()
			r.note()
		}
		r.sharing.write()
	}
	for _, f := range r.feeds {
		if f.Record == "" || !f.listed {
			continue
		}
		now := f.record(r.index.noted, r.feeds)
		if now.Equal(f.noted) {
			continue
		}
		f.noted = now
		f.unrecorded.Set(now.Write(f.Record, f.id))
	}
}
