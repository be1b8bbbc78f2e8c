package command

import (
	"cmp"
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

func newSlow() *cobra.Command {
	var o asking
	var in admin.SlowArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "slow [PATTERN]",
		Short: "List the slowest calls of a running server, and where each spent its time",
		Long: `List the slowest calls that clients of a running server have made in the last hour, and where each
spent its time: checking the arguments, waiting for a place, compiling, starting an instance
(including the wait for memory), running, with its use of grants, and resetting. The rest is
reading the request and sending the answer.

PATTERN names a tool, a namespace, or a pattern such as 'math/*'.`,
		Example:           "  toolsrv slow\n  toolsrv slow math/add --limit 5 --json",
		Args:              onePattern,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		if len(args) == 1 {
			in.Pattern = args[0]
		}
		return ask(ctx, &o, c, out, "slow", in, func(w io.Writer, s *admin.Slowest) error {
			if len(s.Calls) == 0 {
				_, err := io.WriteString(w, "No tool was called in the last hour.\n")
				return err
			}
			rows := [][]string{{"TOOK", "TOOL", "DIGEST", "WHERE", "CODE", "BEGAN", "PRINCIPAL", "CLIENT", "REQUEST"}}
			for _, call := range s.Calls {
				rows = append(rows, []string{briefly(call.Seconds), call.Tool, orDash(text.ShortDigest(call.Digest)), orDash(whereOf(&call)), orDash(call.Code),
					stamp(call.Began), orDash(cmp.Or(call.Caller, call.Principal)), orDash(call.Client), call.RequestID})
			}
			return table(w, rows)
		})
	})
	cmd.Flags().IntVar(&in.Limit, "limit", 20, "how `many` to list")
	return cmd
}

// whereOf returns a text about where a call has spent its time.
func whereOf(c *admin.SlowCall) string {
	var all []string
	for _, p := range c.Phases {
		one := p.Name + " " + briefly(p.Seconds)
		if p.Name == "run" {
			for _, u := range c.Uses {
				one += fmt.Sprintf(" (%d %s %s)", u.Count, u.Capability, briefly(u.Seconds))
			}
		}
		all = append(all, one)
	}
	return strings.Join(all, ", ")
}

// briefly writes a time with three digits or so.
func briefly(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
