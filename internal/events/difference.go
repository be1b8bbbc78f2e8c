package events

import (
	"strings"

	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// difference returns the events between two generations: first those of tools, in the order of their paths, and then those of files.
func difference(before, after *wasmtools.Generation) (all []*Event) {
	at := after.Published()
	add := func(kind string, r *wasmtools.Route) {
		e := &Event{Kind: kind, Time: at, Tool: r.Path}
		if kind != toolRemoved {
			e.Version, e.Digest = r.Tool.Version, r.Tool.Digest
			e.State, e.Reason = stateOf(r)
		}
		all = append(all, e)
	}
	old, now := before.Routes(), after.Routes()
	for len(old) > 0 || len(now) > 0 {
		switch order := compare(old, now); {
		case order < 0:
			add(toolRemoved, &old[0])
			old = old[1:]
		case order > 0:
			add(toolAdded, &now[0])
			now = now[1:]
		default:
			switch a, b := &old[0], &now[0]; {
			case !isSame(a.Tool, b.Tool):
				add(toolChanged, b)
			case a.Enabled != b.Enabled || a.Ungranted != b.Ungranted || a.Reason != b.Reason:
				add(toolSwitched, b)
			}
			old, now = old[1:], now[1:]
		}
	}
	return append(all, refusals(before, after)...)
}

// compare says which of two lists has the next path: the first one if the result is negative, the second one if it is positive, and both if it is 0.
func compare(a, b []wasmtools.Route) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].Path, b[0].Path)
}

// isSame reports whether clients can't tell two tools of one path apart. A reload makes all tools anew, with the same digests.
func isSame(a, b *wasmtools.Tool) bool {
	return a == b || a.Digest != "" && a.Digest == b.Digest && a.Version == b.Version
}

// stateOf returns the state of a tool, and the reason for it.
func stateOf(r *wasmtools.Route) (state, reason string) {
	switch {
	case r.Enabled:
		return enabled, ""
	case r.Ungranted:
		return notGranted, "not granted: " + lacking.Of(r.Tool)
	}
	return disabled, r.Reason
}

// refusals returns events for the files that are newly refused, refused for another reason than before, or no longer refused.
func refusals(before, after *wasmtools.Generation) (all []*Event) {
	old := map[string]string{}
	for _, r := range before.Refused() {
		old[r.Source] = r.Err.Error()
	}
	for _, r := range after.Refused() {
		reason := r.Err.Error()
		if was, ok := old[r.Source]; !ok || was != reason {
			all = append(all, &Event{Kind: fileRefused, Time: after.Published(), File: r.Source, Reason: reason})
		}
		delete(old, r.Source)
	}
	for _, r := range before.Refused() {
		if _, ok := old[r.Source]; ok {
			all = append(all, &Event{Kind: fileCleared, Time: after.Published(), File: r.Source})
			delete(old, r.Source)
		}
	}
	return all
}
