package catalog

import (
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// pending reports whether there may be tools that no generation tells of yet.
func (k *keeper) pending(now time.Time) bool {
	return k.root == nil || len(k.loads) > 0 || !k.publishAt.IsZero() || now.Before(k.expected)
}

// comeAgain reports whether clients of a path without a tool are to try again: while tools are pending, but after the start
// not for as long as files keep coming, or run long to be described. Whoever misspelt a path would not be told.
func (k *keeper) comeAgain(now time.Time) bool {
	pending := k.pending(now)
	if !pending || k.unready.Load() != 0 {
		k.calm = now
	}
	return pending && now.Sub(k.calm) < k.pace.patience
}

// publish makes the shelf the table's content, logs what is new in it, and closes what is no longer served.
func (k *keeper) publish() {
	began := time.Now()
	k.publishAt = time.Time{}
	k.remember() // before anybody is told
	var refused []wasmtools.Refusal
	for _, p := range k.trouble {
		refused = append(refused, wasmtools.Refusal{Source: k.source(p.path), Err: p.err})
	}
	for _, f := range k.shelf.refused() {
		refused = append(refused, wasmtools.Refusal{Source: k.source(f.path), Err: f.refused})
	}
	before := k.table.Current()
	if err := k.table.Replace(k.shelf.served(), refused); err != nil {
		k.logger.Error("the route table does not take the tools: those before them stay", "error", err)
	} else {
		k.logChanges(before, k.table.Current())
		k.shelf.closeOutgoing()
	}
	k.published = time.Since(began)
	if k.root == nil {
		return
	}
	if k.unready.Swap(int64(k.awaited)) != 0 && k.awaited == 0 {
		close(k.ready)
	}
}

// logChanges writes a line for each tool that came, changed or went, and for each file that is refused for a new reason.
func (k *keeper) logChanges(before, after *wasmtools.Generation) {
	for _, r := range after.Routes() {
		t := r.Tool
		old, ok := before.Lookup(t.Path())
		what := "tool added"
		if ok {
			if old.Tool.Digest == t.Digest && old.Tool.Source == t.Source {
				continue
			}
			what = "tool replaced"
		}
		k.logger.Info(what, "path", t.Path(), "file", t.Source, "version", t.Version, "digest", t.Digest[:min(12, len(t.Digest))])
	}
	for _, r := range before.Routes() {
		if _, ok := after.Lookup(r.Tool.Path()); !ok {
			k.logger.Info("tool removed", "path", r.Tool.Path(), "file", r.Tool.Source)
		}
	}
	known := map[string]string{}
	for _, r := range before.Refused() {
		known[r.Source] = r.Err.Error()
	}
	for _, r := range after.Refused() {
		if why := r.Err.Error(); known[r.Source] != why {
			k.logger.Warn("file refused", "file", r.Source, "reason", why)
		}
	}
}

// remember keeps who waits for whom on disk, where that has changed and all files of the first scan are known.
func (k *keeper) remember() {
	if k.record == "" || k.root == nil || k.awaited > 0 {
		return
	}
	now := k.shelf.precedence()
	if now.Equal(k.shelf.before) {
		return
	}
	k.shelf.before = now
	err := now.Write(k.record, k.directory)
	if err != nil && !k.forgetful {
		k.logger.Warn("after a restart another file may have a path that two files want: who has it now can't be noted", "error", err)
	}
	k.forgetful = err != nil
}
