package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/text"
)

func newReload() *cobra.Command {
	var o asking
	var in admin.ReloadArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "reload",
		Short: "Have a running server read its configuration again",
		Long: `Have a running server read its configuration again, and show what has changed: settings, limits,
grants and tokens, and which tools were switched, got the grants they lacked, or lost grants they
need. A wrong configuration changes nothing, and the exit code is 3.

--dry-run shows what would change. With the version that it prints, --if-match makes a reload do
exactly that, or nothing.`,
		Example: "  toolsrv reload --dry-run\n  toolsrv reload",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "reload", in, showReloading)
	})
	o.addExpected(cmd)
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "change nothing, and say what would change")
	return cmd
}

func showReloading(w io.Writer, r *admin.Reloading) error {
	rows := [][]string{}
	for _, list := range []struct {
		what string
		all  []string
	}{
		{"setting", r.Settings}, {"limit", r.Limits}, {"grant", r.Grants}, {"token added", r.TokensAdded}, {"token removed", r.TokensRemoved},
		{"enabled", r.Enabled}, {"disabled", r.Disabled}, {"granted", r.Granted}, {"withdrawn", r.Withdrawn}, {"needs a restart", r.Restart},
	} {
		for _, one := range list.all {
			rows = append(rows, []string{list.what, one})
		}
	}
	if len(rows) == 0 {
		rows = append(rows, []string{"Nothing changes."})
	}
	if r.DryRun {
		fmt.Fprintf(w, "Would change (version %s):\n", oneLine(r.Version))
	}
	return table(w, rows)
}

func newGoroutines() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use:     "goroutines",
		Short:   "Print what a running server is doing",
		Long:    "Print the stacks of all goroutines of a running server, which keeps running. They are meant for bug\nreports, and are available only over the socket.",
		Example: "  toolsrv goroutines > stacks.txt",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "goroutines", struct{}{}, func(w io.Writer, g *admin.Goroutines) error {
			_, err := io.WriteString(w, text.Escape(g.Stacks))
			return err
		})
	})
}
