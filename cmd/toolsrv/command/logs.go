package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/wasmtools"
)

func newLogs() *cobra.Command {
	var o asking
	var in admin.LogsArguments
	var follow bool
	cmd := newAsking(&o, &cobra.Command{
		Use:   "logs",
		Short: "Show the last lines of the log of a running server",
		Long: `Show the last lines of the log of a running server, which keeps several thousand of them in
memory. With --follow it goes on as lines come, until Ctrl-C, even if the server restarts. If you
can't keep up, a line says how many are missing.`,
		Example: "  toolsrv logs --level warn\n  toolsrv logs --follow --tool 'math/*' --json",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		if err := checkLast(in.Limit); err != nil {
			return err
		}
		if !follow {
			return ask(ctx, &o, c, out, "logs", in, func(w io.Writer, page *admin.Logs) error { return showLines(w, page, false) })
		}
		return followed(ctx, &o, c, "logs", func() any { return in }, func(page *admin.Logs) error {
			in.After, in.Run, in.Limit, in.Wait = max(page.Last, 1), page.Run, 1000, waitForMore
			return showLines(out, page, o.asJSON)
		})
	})
	flags := cmd.Flags()
	flags.StringVar(&in.Level, "level", "", "show lines of this `level` or above: debug, info, warn or error")
	flags.StringVar(&in.Tool, "tool", "", "show only lines about tools that match this `pattern`")
	flags.StringVar(&in.Principal, "principal", "", "show only lines about this `caller`: a name, or a unique one such as oidc+https%3a%2f%2fid.example.com+ann")
	flags.IntVar(&in.Limit, "last", 100, "how `many` of the last lines to show, up to 1000")
	flags.BoolVarP(&follow, "follow", "f", false, "go on showing lines as they come, until Ctrl-C")
	completeFlag(cmd, "level", cobra.FixedCompletions([]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "tool", cobra.NoFileCompletions)
	completeFlag(cmd, "principal", cobra.NoFileCompletions)
	return cmd
}

// checkLast checks the flag of that name.
func checkLast(n int) error {
	if n < 1 || n > 1000 {
		return &usageError{fmt.Errorf("--last is %d: give 1 to 1000", n)}
	}
	return nil
}

const (
	// waitForMore is how many seconds the server waits for something new before it answers that there is nothing.
	waitForMore = 10
	// askAgain is how long to wait before asking a server again that has stopped answering.
	askAgain = time.Second
)

// followed shows one answer after another until ctx ends. After the first answer, a server that doesn't answer may be restarting, and is asked again.
// If the server has no room for another follower, that is printed once.
func followed[Out any](ctx context.Context, o *asking, c *client.Client, operation string, arguments func() any, show func(*Out) error) error {
	for answered, said := false, false; ; {
		answer, err := c.Do(ctx, operation, arguments(), "")
		switch {
		case err == nil:
			answered = true
			var page Out
			if err := answer.Into(&page); err != nil {
				return err
			}
			if err := show(&page); err != nil {
				return err
			}
			continue
		case ctx.Err() != nil:
			return nil
		case !answered || !mayPass(err):
			return err
		}
		if failed, ok := errors.AsType[*wasmtools.Error](err); ok && failed.Code == wasmtools.CodeOverloaded && !said {
			said = true
			fmt.Fprintf(o.stderr, "toolsrv: the server has no room for another follower now; trying again until it has: %s\n", oneLine(failed.Message))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(askAgain):
		}
	}
}

// mayPass reports whether an error may be temporary: no server answers, or it accepts no requests at the moment.
func mayPass(err error) bool {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	return !ok || failed.Code == wasmtools.CodeNotReady || failed.Code == wasmtools.CodeOverloaded
}

// showLines prints lines: for people, or each as a line of JSON.
func showLines(out io.Writer, page *admin.Logs, asJSON bool) error {
	var b strings.Builder
	if page.Missed > 0 && asJSON {
		fmt.Fprintf(&b, "{\"missed\":%d}\n", page.Missed)
	} else if page.Missed > 0 {
		fmt.Fprintf(&b, "(%d lines were missed)\n", page.Missed)
	}
	for _, line := range page.Lines {
		if asJSON {
			text, err := json.Marshal(line)
			if err != nil {
				return err
			}
			b.Write(append(escapeJSON(text), '\n'))
			continue
		}
		var attributes map[string]any
		if err := json.Unmarshal(line.Attributes, &attributes); err != nil {
			return fmt.Errorf("read the server's answer, which may be of another version: %w", err)
		}
		fmt.Fprintf(&b, "%s %-5s %s", stamp(line.Time), line.Level, oneLine(line.Message))
		for _, key := range slices.Sorted(maps.Keys(attributes)) {
			fmt.Fprintf(&b, " %s=%s", oneLine(key), valueText(attributes[key]))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// valueText writes the value of an attribute in a line.
func valueText(value any) string {
	if s, ok := value.(string); ok {
		if s == "" || strings.ContainsAny(s, " =\"") {
			return oneLine(strconv.Quote(s))
		}
		return oneLine(s)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return oneLine(string(text))
}

func newRefused() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use:     "refused",
		Short:   "List the files and tools that a running server refuses, and why",
		Long:    "List the files and folders that a running server can't serve, and the tools that lack a grant, each\nwith the reason.",
		Example: "  toolsrv refused\n  toolsrv refused --json",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "refused", struct{}{}, func(w io.Writer, r *admin.Refusals) error {
			if len(r.Refused) == 0 {
				_, err := io.WriteString(w, "Nothing is refused.\n")
				return err
			}
			rows := [][]string{{"WHAT", "SINCE", "SERVED", "REASON"}}
			for _, one := range r.Refused {
				what, since, served := one.What, "-", "-"
				if one.Kind == "file" {
					what, since = nearby(what), stamp(one.Since)
				}
				if one.Older {
					served = "an older version"
				}
				rows = append(rows, []string{what, since, served, one.Reason})
			}
			return table(w, rows)
		})
	})
}
