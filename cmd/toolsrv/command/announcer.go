package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// How many tools, files and lines are printed at once. Directories may have thousands of tools, and errors may quote thousands of lines.
const (
	maxTold       = 10
	maxErrorLines = 12
	maxErrorBytes = 2000
)

// An announcer tells a person which tools are served, how to call them, and what changes.
type announcer struct {
	w          io.Writer
	style      style
	server     string // the server's host:port for programs on this machine
	needsToken bool
	empty      string // what to do while no tool is served
	// loading returns the files that are still being read. If it is nil, no files are being read.
	loading func() []string

	waits   bool                       // it has printed that files are still being read, and no tool is served yet
	bare    bool                       // it has printed that there is nothing to serve
	served  map[string]*wasmtools.Tool // by path
	lacking map[string]string
	refused map[string]string // reasons by file
}

// follow prints the tools of a table, and each change, until ctx ends.
func (a *announcer) follow(ctx context.Context, table *wasmtools.RouteTable) {
	changed := make(chan struct{}, 1) // the channel is full, so one more look is due anyway
	defer table.Subscribe(func(*wasmtools.Generation) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		a.tell(table.Current())
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// news are the differences between a generation and the one before.
type news struct {
	added, changed []wasmtools.Route
	gone           []string
	lacking        []wasmtools.Route
	refused        []wasmtools.Refusal
}

// look returns the news, and from then on treats it as already told.
func (a *announcer) look(g *wasmtools.Generation) (n news) {
	served, without, refused := map[string]*wasmtools.Tool{}, map[string]string{}, map[string]string{}
	for _, route := range g.Routes() {
		switch {
		case route.Enabled:
			served[route.Path] = route.Tool
			switch before := a.served[route.Path]; {
			case before == nil:
				n.added = append(n.added, route)
			case before != route.Tool && before.Digest != route.Tool.Digest:
				n.changed = append(n.changed, route)
			}
		case route.Ungranted:
			without[route.Path] = lacking.Of(route.Tool)
			if a.lacking[route.Path] != without[route.Path] {
				n.lacking = append(n.lacking, route)
			}
		}
	}
	for path := range a.served {
		if served[path] == nil && without[path] == "" {
			n.gone = append(n.gone, path)
		}
	}
	slices.Sort(n.gone)
	for _, r := range g.Refused() {
		refused[r.Source] = r.Err.Error()
		if a.refused[r.Source] != refused[r.Source] {
			n.refused = append(n.refused, r)
		}
	}
	a.served, a.lacking, a.refused = served, without, refused
	return n
}

// tell prints what is new in a generation.
func (a *announcer) tell(g *wasmtools.Generation) {
	first := len(a.served) == 0
	n := a.look(g)
	var b strings.Builder
	switch {
	case len(n.added) > 0 && first:
		fmt.Fprintf(&b, "\n%s To call %s, in another terminal:\n\n", a.style.bold(count(len(n.added), "tool")+"."), itOrThem(len(n.added)))
		a.tellAdded(&b, n.added)
	case len(n.added) > 0:
		fmt.Fprintf(&b, "\n%s\n\n", a.style.bold("New:"))
		a.tellAdded(&b, n.added)
	}
	if len(n.changed) > 0 {
		fmt.Fprintf(&b, "\n%s %s\n", a.style.bold("Changed:"), somePaths(routePaths(n.changed)))
	}
	if len(n.gone) > 0 {
		fmt.Fprintf(&b, "\n%s %s\n", a.style.bold("Gone:"), somePaths(n.gone))
	}
	a.tellLacking(&b, n.lacking)
	a.tellRefused(&b, n.refused)
	if len(a.served) > 0 {
		a.waits, a.bare = false, false
	} else {
		a.tellNothing(&b)
	}
	if b.Len() > 0 {
		io.WriteString(a.w, b.String())
	}
}

// tellNothing writes, once, why no tool is served: because files are still being read, or because there are none.
func (a *announcer) tellNothing(w io.Writer) {
	var loading []string
	if a.loading != nil {
		loading = a.loading()
	}
	switch {
	case len(loading) > 0 && !a.waits:
		a.waits = true
		fmt.Fprintf(w, "\nReading %s.\n", few(loading))
	case len(loading) == 0 && !a.bare:
		a.bare = true
		fmt.Fprintf(w, "\n%s\n", a.empty)
	}
}

// tellAdded writes for each tool what it does and how to call it.
func (a *announcer) tellAdded(w io.Writer, routes []wasmtools.Route) {
	for _, route := range routes[:min(len(routes), maxTold)] {
		about := ""
		if line := text.Clip(oneLine(firstLine(text.Prefix(route.Tool.Description, 1000))), 100); line != "" {
			about = "  " + line
		}
		fmt.Fprintf(w, "  %s%s\n    %s\n", a.style.bold(route.Path), about, callLine(a.server, route.Tool, a.needsToken))
	}
	if more := len(routes) - maxTold; more > 0 {
		fmt.Fprintf(w, "  and %d more: curl -s %s/tools\n", more, a.server)
	}
}

// tellLacking writes which tools lack a grant.
func (a *announcer) tellLacking(w io.Writer, routes []wasmtools.Route) {
	for _, route := range routes[:min(len(routes), maxTold)] {
		fmt.Fprintf(w, "\n%s is not served, because it needs %s:\n", a.style.bold(route.Path), text.Clip(oneLine(lacking.Of(route.Tool)), maxErrorBytes))
		tellMissing(w, route.Tool)
	}
	if more := len(routes) - maxTold; more > 0 {
		fmt.Fprintf(w, "\n%s more need something: toolsrv inspect says what.\n", count(more, "tool"))
	}
}

// tellRefused writes what is wrong with files. An error in a script begins with its place, so that editors and terminals find it.
func (a *announcer) tellRefused(w io.Writer, refused []wasmtools.Refusal) {
	kept := map[string]bool{}
	for _, tool := range a.served {
		kept[tool.Source] = true
	}
	for _, r := range refused[:min(len(refused), maxTold)] {
		heading, between := "Not served:", ": "
		if kept[r.Source] {
			heading = "Not loaded, so the previous version stays in service:"
		}
		reason := text.Escape(clipLines(strings.TrimSpace(r.Err.Error())))
		if isAuthors(r.Err) || strings.Contains(reason, "\n") {
			between = "\n"
		}
		fmt.Fprintf(w, "\n%s %s%s%s\n", a.style.wrong(heading), oneLine(nearby(r.Source)), between, reason)
	}
	if more := len(refused) - maxTold; more > 0 {
		fmt.Fprintf(w, "\n%s more can't be served: toolsrv check says why.\n", count(more, "file"))
	}
}

// clipLines returns the beginning of a text.
func clipLines(s string) string {
	lines := strings.SplitN(text.Clip(s, maxErrorBytes), "\n", maxErrorLines+1)
	if len(lines) > maxErrorLines {
		lines[maxErrorLines] = "..."
	}
	return strings.Join(lines, "\n")
}

func routePaths(routes []wasmtools.Route) (paths []string) {
	for _, route := range routes {
		paths = append(paths, route.Path)
	}
	return paths
}

// somePaths names paths in a line.
func somePaths(paths []string) string {
	if more := len(paths) - maxTold; more > 0 {
		return strings.Join(paths[:maxTold], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(paths, ", ")
}

// count returns a number of things.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// A style says how words stand out, if at all.
type style struct{ colour bool }

// styleOf returns the style for what is written to w: terminals get colour unless their user has switched it off.
func styleOf(w io.Writer) style {
	return style{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s style) bold(words string) string { return s.with("1", words) }

func (s style) wrong(words string) string { return s.with("1;31", words) }

func (s style) with(code, words string) string {
	if !s.colour {
		return words
	}
	return "\x1b[" + code + "m" + words + "\x1b[0m"
}
