package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/text"
)

func newStatus() *cobra.Command {
	var o asking
	var in admin.StatusArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "status",
		Short: "Show the state of a running server",
		Long: `Show the state of a running server: its version, whether it is ready, where its tools come from,
which files it can't serve and why, how many calls are running and waiting, how much of each limit
is used, such as memory, code and connections, and which tools and callers use most of it.`,
		Example: `  toolsrv status
  toolsrv status --all --config /etc/toolsrv/toolsrv.toml`,
		Args: noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "status", in, showStatus)
	})
	cmd.Flags().BoolVar(&in.All, "all", false, "also list the files without problems")
	return cmd
}

// ratesText returns a text about the limits on calls, or "" if there are none.
func ratesText(r *admin.Rates) string {
	var parts []string
	if r.Default != "" {
		parts = append(parts, "each caller "+r.Default)
	}
	if r.Anonymous != "" {
		parts = append(parts, "each address "+r.Anonymous)
	}
	if n := r.Principals + r.Addresses; n > 0 || r.Refused > 0 || len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("%d callers known, %d calls refused", n, r.Refused))
	}
	return strings.Join(parts, "; ")
}

// holderText returns the name of a caller, for people.
func holderText(h *admin.Holder) string {
	if len(h.Tools) == 0 {
		return h.Caller
	}
	said := strings.Join(h.Tools, ", ")
	if h.Others > 0 {
		said += fmt.Sprintf(" and %d more", h.Others)
	}
	return said
}

// sumText returns a text with the number of calls.
func sumText(of admin.TopSum) string {
	switch {
	case of.Calls == 0:
		return "no calls"
	case of.Failed == 0:
		return fmt.Sprintf("%d calls", of.Calls)
	}
	return fmt.Sprintf("%d calls, %s failed or were refused", of.Calls, share(of))
}

func showStatus(w io.Writer, s *admin.Status) error {
	ready := "yes"
	if !s.Ready {
		ready = "no: " + s.Because
	}
	compiled := "all"
	if !s.Code.Done {
		compiled = fmt.Sprintf("still going: %d under way, %d queued", s.Code.Running, s.Code.Queued)
	}
	use := func(u admin.Use, write func(int64) string) string {
		said := write(u.Held)
		if u.Limit > 0 {
			said += " of " + write(u.Limit)
		}
		if u.Waiting > 0 {
			said += fmt.Sprintf(", %d waiting", u.Waiting)
		}
		return said
	}
	size := text.RoundSize[int64]
	number := func(n int64) string { return fmt.Sprint(n) }
	state := s.State
	if s.Limits.State != nil {
		state += ", " + size(s.Limits.State.Held)
	}
	rows := [][]string{
		{"server", fmt.Sprintf("toolsrv %s (revision %s), process %d, since %s", s.Server.Version, s.Server.Revision, s.Server.PID, stamp(s.Server.Since))},
		{"listens on", strings.Join(s.Server.Addresses, ", ")},
		{"ready", ready},
		{"compiled", compiled},
		{"state", state},
		{"tools", fmt.Sprintf("%d, %d of them disabled, %d lacking a grant", s.Tools.All, s.Tools.Disabled, s.Tools.NotGranted)},
		{"calls", fmt.Sprintf("%d running, %d waiting", s.Calls.Running, s.Calls.Waiting)},
		{"last minute", sumText(s.Calls.Minute)},
		{"last hour", sumText(s.Calls.Hour)},
		{"memory", use(s.Limits.Memory, size)},
		{"code", use(s.Limits.Code, size)},
		{"mappings", use(s.Limits.Mappings, number)},
		{"manifests", use(s.Limits.Manifests, size)},
		{"sources", use(s.Limits.Sources, size)},
		{"bodies", use(s.Limits.Bodies, size)},
		{"connections", use(s.Limits.Connections, number)},
		{"streams", use(s.Limits.Streams, number)},
	}
	if s.Limits.Sessions != nil {
		rows = append(rows, []string{"sessions", use(*s.Limits.Sessions, number)})
	}
	if text := ratesText(&s.Rates); text != "" {
		rows = append(rows, []string{"rates", text})
	}
	if err := table(w, rows); err != nil {
		return err
	}
	rows = [][]string{{"HELD", "OF", "BY"}}
	for _, part := range []struct {
		of    string
		use   *admin.Use
		write func(int64) string
	}{
		{"memory", &s.Limits.Memory, size}, {"code", &s.Limits.Code, size}, {"mappings", &s.Limits.Mappings, number}, {"bodies", &s.Limits.Bodies, size},
		{"connections", &s.Limits.Connections, number}, {"streams", &s.Limits.Streams, number}, {"sessions", s.Limits.Sessions, number},
	} {
		if part.use == nil {
			continue
		}
		for i := range part.use.By {
			rows = append(rows, []string{part.write(part.use.By[i].Held), part.of, holderText(&part.use.By[i])})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintln(w)
		if err := table(w, rows); err != nil {
			return err
		}
	}
	if len(s.Calls.Busy) > 0 {
		rows = [][]string{{"BUSY", "RUNNING", "WAITING", "PLACES"}}
		for _, b := range s.Calls.Busy {
			rows = append(rows, []string{b.Path, fmt.Sprint(b.Running), fmt.Sprint(b.Waiting), fmt.Sprint(b.Places)})
		}
		fmt.Fprintln(w)
		if err := table(w, rows); err != nil {
			return err
		}
	}
	if len(s.Sources) > 1 || len(s.Sources) == 1 && s.Sources[0].Problems > 0 {
		rows = [][]string{{"SOURCE", "LISTED", "FILES", "SERVED", "REFUSED", "PROBLEM"}}
		for _, f := range s.Sources {
			name := nearby(f.Place)
			if f.Name != "" {
				name = f.Name + " (" + name + ")"
			}
			problem := f.Reason
			if f.Problems > 1 {
				problem += fmt.Sprintf("; and %d more", f.Problems-1)
			}
			rows = append(rows, []string{name, stamp(f.Listed), fmt.Sprint(f.Files), fmt.Sprint(f.Served), fmt.Sprint(f.Refused), problem})
		}
		fmt.Fprintln(w)
		if err := table(w, rows); err != nil {
			return err
		}
	}
	if len(s.Files) > 0 {
		rows = [][]string{{"FILE", "STATE", "SINCE", "SERVED", "REASON"}}
		for _, f := range s.Files {
			rows = append(rows, []string{nearby(f.File), f.State, stamp(f.Since), orDash(text.ShortDigest(f.Digest)), f.Reason})
		}
		fmt.Fprintln(w)
		return table(w, rows)
	}
	return nil
}

// stamp returns a time for people, in the local time zone.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
