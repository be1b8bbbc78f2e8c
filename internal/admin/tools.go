package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// ToolsArguments are the arguments of the operation tools.
type ToolsArguments struct {
	All     bool   `json:"all,omitempty" description:"Also list tools that can't be called."`
	Pattern string `json:"pattern,omitempty" description:"List only the tools that match, such as math/add, math or math/*." maxLength:"1024"`
}

// Tools are the tools of a server.
type Tools struct {
	// Tools are sorted by path.
	Tools []Tool `json:"tools" description:"The tools, by path."`
}

// A Tool is what an operator wants to know about a tool.
type Tool struct {
	Path        string `json:"path" description:"The tool's path, such as /math/add."`
	State       string `json:"state" enum:"enabled,disabled,not_granted" description:"Whether the tool can be called."`
	Why         Why    `json:"why" description:"Why the tool has this state."`
	Version     string `json:"version" description:"The tool's version as its author wrote it, or empty."`
	Digest      string `json:"digest" description:"The SHA-256 of the tool's file in hexadecimal, or empty if it has none."`
	Fingerprint string `json:"fingerprint" description:"The SHA-256 of what clients see of the tool, to which a token can be bound."`
	File        string `json:"file" description:"Where the tool's file lies, or empty."`
	Running     int    `json:"running" description:"How many calls of the tool are running."`
	Waiting     int    `json:"waiting" description:"How many calls of the tool are waiting for their turn."`
	Places      int    `json:"places" description:"How many calls of the tool may run at once."`
}

// These are the states of a tool.
const (
	Enabled    = "enabled"
	Disabled   = "disabled"
	NotGranted = "not_granted"
)

// A Why says what decides a tool's state.
type Why struct {
	By      string     `json:"by" enum:"default,configuration,switch,grants" description:"What decides: the default, the configuration, a switch, or the grants."`
	Key     string     `json:"key,omitempty" description:"The entry of the configuration."`
	Line    int        `json:"line,omitempty" description:"The line of the configuration that says so."`
	Scope   string     `json:"scope,omitempty" description:"What was switched, such as /math."`
	Who     string     `json:"who,omitempty" description:"Who switched the tool."`
	Since   *time.Time `json:"since,omitempty" description:"When the tool was switched."`
	Reason  string     `json:"reason,omitempty" description:"The reason that was given."`
	Missing []string   `json:"missing,omitempty" description:"What the tool needs but was not granted."`
}

// These are what can decide a tool's state.
const (
	ByDefault       = "default"
	ByConfiguration = "configuration"
	BySwitch        = "switch"
	ByGrants        = "grants"
)

// String describes w in words.
func (w Why) String() string {
	var s string
	switch w.By {
	case ByConfiguration:
		s = w.Key
		if w.Line > 0 {
			s += fmt.Sprintf(", line %d", w.Line)
		}
	case BySwitch:
		s = "switched by " + w.Who
		if w.Who == "" {
			s = "switched by the program"
		}
		if w.Since != nil {
			s += " at " + w.Since.Format(time.RFC3339)
		}
	case ByGrants:
		return "not granted: " + strings.Join(w.Missing, ", ")
	}
	if w.Reason != "" {
		s += ": " + w.Reason
	}
	return s
}

func tools() Operation {
	return Looks("tools", "List the tools, and why each can be called or not", func(_ context.Context, r *Request, in ToolsArguments) (Tools, error) {
		match, err := matcher(in.Pattern)
		if err != nil {
			return Tools{}, err
		}
		g := r.generation()
		listed := Tools{Tools: make([]Tool, 0, len(g.Routes()))}
		decide := decider(g)
		for _, route := range g.Routes() {
			if (in.All || route.Enabled) && match(route.Path) {
				listed.Tools = append(listed.Tools, toolOf(&route, decide(&route)))
			}
		}
		if len(listed.Tools) == 0 && in.Pattern != "" && !slices.ContainsFunc(g.Routes(), func(r wasmtools.Route) bool { return match(r.Path) }) {
			return Tools{}, &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: fmt.Sprintf("No tool matches %q", in.Pattern)}
		}
		return listed, nil
	})
}

// matcher returns a function that reports whether a tool matches a pattern. An empty pattern matches all tools.
func matcher(text string) (func(path string) bool, error) {
	if text == "" {
		return func(string) bool { return true }, nil
	}
	if err := pattern.Check(text); err != nil {
		return nil, invalid(err.Error())
	}
	return func(path string) bool { return pattern.Match(text, path) }, nil
}

func toolOf(route *wasmtools.Route, why Why) Tool {
	t := route.Tool
	told := Tool{Path: route.Path, State: Enabled, Why: why, Version: t.Version, Digest: t.Digest, Fingerprint: t.Fingerprint(), File: t.Source}
	switch {
	case route.Ungranted:
		told.State = NotGranted
	case !route.Enabled:
		told.State = Disabled
	}
	b := busy(route)
	told.Running, told.Waiting, told.Places = b.Running, b.Waiting, b.Places
	return told
}

// busy returns the running and waiting calls of a tool. They are not known for the program's own tools.
func busy(route *wasmtools.Route) Busy {
	b := Busy{Path: route.Path}
	p, _ := core.PlacesOf(route.Tool)
	b.Running, b.Waiting, b.Places = p.Running, p.Waiting, p.Most
	return b
}

// decider returns a function that says why a route of a generation is in its state.
func decider(g *wasmtools.Generation) func(*wasmtools.Route) Why {
	c := configurationOf(g).Config
	key, entries := "tools.disabled", configured.EntriesOf(c)
	if c.Tools.Allowlist {
		key = "tools.enabled"
	}
	return func(route *wasmtools.Route) Why {
		if route.Ungranted {
			return Why{By: ByGrants, Missing: lacking.Each(route.Tool.Missing)}
		}
		if s, ok := g.Switch(route.Path); ok {
			return Why{By: BySwitch, Scope: s.Scope, Who: s.By, Since: &s.Since, Reason: s.Reason}
		}
		at, named := entries.Nearest(route.Path)
		switch {
		case named:
			why := Why{By: ByConfiguration, Key: fmt.Sprintf("%s[%d]", key, at), Reason: route.Reason}
			if at < len(c.Tools.Lines) {
				why.Line = c.Tools.Lines[at]
			}
			return why
		case c.Tools.Allowlist:
			return Why{By: ByConfiguration, Key: "tools.mode"}
		}
		return Why{By: ByDefault}
	}
}
