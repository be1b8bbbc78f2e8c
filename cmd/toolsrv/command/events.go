package command

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/events"
)

func newEvents() *cobra.Command {
	var o asking
	var in admin.EventsArguments
	var follow bool
	cmd := newAsking(&o, &cobra.Command{
		Use:   "events",
		Short: "Show what has happened to the tools of a running server",
		Long: `Show what has happened to a running server: tools that were added, changed, removed or switched,
files that were refused, and the entries of the audit, such as those of tokens and reloads. With
--follow it goes on as things happen, until Ctrl-C, even if the server restarts. The server keeps
the last 10,000 events in memory.

Clients get the same at /events.`,
		Example: "  toolsrv events --last 20\n  toolsrv events --follow --tool 'math/*' --json",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		if err := checkLast(in.Limit); err != nil {
			return err
		}
		if !follow {
			return ask(ctx, &o, c, out, "events", in, func(w io.Writer, page *admin.Events) error { return showEvents(w, page, false) })
		}
		return followed(ctx, &o, c, "events", func() any { return in }, func(page *admin.Events) error {
			in.After, in.Limit, in.Wait = page.Last, 1000, waitForMore
			return showEvents(out, page, o.asJSON)
		})
	})
	flags := cmd.Flags()
	flags.StringVar(&in.Tool, "tool", "", "show only events of tools that match this `pattern`")
	flags.IntVar(&in.Limit, "last", 100, "how `many` of the last events to show, up to 1000")
	flags.BoolVarP(&follow, "follow", "f", false, "go on showing events as they happen, until Ctrl-C")
	completeFlag(cmd, "tool", cobra.NoFileCompletions)
	return cmd
}

// showEvents prints events: for people, or each as a line of JSON.
func showEvents(out io.Writer, page *admin.Events, asJSON bool) error {
	var b strings.Builder
	switch {
	case page.Missed && asJSON:
		b.WriteString("{\"missed\":true}\n")
	case page.Missed:
		b.WriteString("(events may have been missed)\n")
	}
	for i := range page.Events {
		e := &page.Events[i]
		if !asJSON {
			b.WriteString(eventText(e))
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		b.Write(append(escapeJSON(text), '\n'))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// eventText is an event for people, on a line of its own.
func eventText(e *events.Event) string {
	parts := []string{stamp(e.Time), e.Kind}
	if a := e.Audit; a != nil {
		parts = append(parts, a.Action, a.Target, "by", actorOf(&a.Entry)+":", whatOf(&a.Entry))
	}
	if e.File != "" {
		parts = append(parts, nearby(e.File))
	}
	var b strings.Builder
	state := e.State
	if strings.HasPrefix(e.Reason, strings.ReplaceAll(state, "_", " ")) { // the reason says the same, and more
		state = ""
	}
	for _, part := range append(parts, e.Tool, e.Version, state) {
		if part != "" {
			b.WriteString(oneLine(part) + " ")
		}
	}
	line := strings.TrimRight(b.String(), " :")
	if e.Reason != "" {
		line += ": " + oneLine(e.Reason)
	}
	return line + "\n"
}
