package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
)

func newTop() *cobra.Command {
	var o asking
	var in admin.TopArguments
	var follow bool
	cmd := newAsking(&o, &cobra.Command{
		Use:   "top [PATTERN]",
		Short: "List the tools of a running server that are called most",
		Long: `List the tools of a running server that are called most, with how many calls fail, how long they
take, and how much fuel they burn, which is roughly the number of instructions they run. CALLS/S to
FUEL/S cover the last minute, the rest the last hour. The server counts in steps of ten seconds.
Tools that are called too rarely to be counted one by one are listed together as other.

PATTERN names a tool, a namespace, or a pattern such as 'math/*'.`,
		Example:           "  toolsrv top\n  toolsrv top --follow\n  toolsrv top math/add --steps 360 --json",
		Args:              onePattern,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		if len(args) == 1 {
			in.Pattern = args[0]
		}
		for {
			if err := ask(ctx, &o, c, out, "top", in, writeTop); err != nil || !follow {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(admin.TopStep):
			}
		}
	})
	cmd.Flags().IntVar(&in.Limit, "limit", 20, "how `many` tools to list")
	cmd.Flags().IntVar(&in.Steps, "steps", 0, "with --json: how `many` of the last ten-second steps to list for each")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show the list again every ten seconds, until Ctrl-C")
	return cmd
}

func writeTop(w io.Writer, t *admin.Top) error {
	if len(t.Tools) == 0 {
		_, err := io.WriteString(w, "No tool was called in the last hour.\n")
		return err
	}
	rows := [][]string{{"TOOL", "CALLS/S", "FAILED", "P50", "P99", "FUEL/S", "CALLS/H", "FAILED/H", "FUEL/H"}}
	for _, of := range t.Tools {
		median, slow := "-", "-"
		if of.Minute.Calls > 0 {
			median, slow = briefly(of.Minute.Median), briefly(of.Minute.Slow)
		}
		rows = append(rows, []string{of.Tool, fmt.Sprintf("%.1f", float64(of.Minute.Calls)/60), share(of.Minute.TopSum), median, slow, amount(float64(of.Minute.Fuel) / 60), fmt.Sprint(of.Hour.Calls), share(of.Hour), amount(float64(of.Hour.Fuel))})
	}
	return table(w, rows)
}

// share returns a text about how many calls failed.
func share(of admin.TopSum) string {
	if of.Failed == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(of.Failed)/float64(of.Calls))
}

// amount returns a large number in a few characters, such as 12.3 M.
func amount(n float64) string {
	if n < 1 {
		return "-"
	}
	unit := ""
	for _, next := range []string{"k", "M", "G", "T", "P"} {
		if n < 999.5 {
			break
		}
		n, unit = n/1000, " "+next
	}
	if n < 99.5 && unit != "" {
		return fmt.Sprintf("%.1f%s", n, unit)
	}
	return fmt.Sprintf("%.0f%s", n, unit)
}
