package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/reach"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// exitGained is the exit code of `toolsrv reach --diff` if somebody can reach more. It is stable.
const exitGained = 3

// A reachDifference is what `toolsrv reach --diff --json` prints. Its members are stable.
type reachDifference struct {
	Gained []reach.Way `json:"gained"`
	Lost   []reach.Way `json:"lost"`
}

func newReach() *cobra.Command {
	var o asking
	var in admin.ReachArguments
	var diff bool
	cmd := newAsking(&o, &cobra.Command{
		Use:   "reach {[PATTERN] | --diff OLD.toml NEW.toml}",
		Short: "Show what callers can reach outside the sandboxes, also through tools that call others",
		Long: `Show for each caller of a running server, and each tool that it can call, what it can reach in the
end: services, secrets, directories, and namespaces of keys. THROUGH names the tools that are
called on the way; if it is empty, the tool reaches it directly. PATTERN names a tool, a
namespace, or a pattern such as 'math/*'.

--diff compares two configurations, with the tools that they name, and needs no server: it shows
who can reach what under the new one but not under the old one (+), and what is lost (-). All
tokens without a name count as one caller, "token". The exit code is 3 if anybody can reach more,
so that CI can require a review.`,
		Example: `  toolsrv reach 'weather/*'
  toolsrv reach --diff live.toml proposed.toml`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !diff:
				return onePattern(cmd, args)
			case len(args) != 2:
				return errors.New("--diff compares two configurations: name the old one and the new one")
			case o.config != "" || o.server != "":
				return errors.New("--diff asks no server: leave out --config and --server")
			}
			return nil
		},
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		if len(args) == 1 {
			in.Pattern = args[0]
		}
		return ask(ctx, &o, c, out, "reach", in, func(w io.Writer, r *admin.Reach) error { return printWays(w, r.Ways) })
	})
	asks := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !diff {
			return asks(cmd, args)
		}
		return diffReach(cmd, args[0], args[1], o.asJSON)
	}
	cmd.Flags().StringVar(&in.Principal, "principal", "", "show what this `caller` can reach")
	cmd.Flags().BoolVar(&diff, "diff", false, "compare two configurations")
	completeFlag(cmd, "principal", cobra.NoFileCompletions)
	return cmd
}

// printWays prints ways, one line each.
func printWays(w io.Writer, ways []reach.Way) error {
	if len(ways) == 0 {
		_, err := io.WriteString(w, "Nothing outside the sandboxes can be reached.\n")
		return err
	}
	rows := [][]string{{"CALLER", "TOOL", "REACHES", "", "THROUGH", ""}}
	for _, way := range ways {
		rows = append(rows, rowOf(way))
	}
	return table(w, rows)
}

func rowOf(w reach.Way) []string {
	return []string{w.Principal, w.Tool, w.Capability, w.Entry, strings.Join(w.Through, ", "), w.Detail}
}

// diffReach prints how two configurations differ in what callers can reach.
func diffReach(cmd *cobra.Command, older, newer string, asJSON bool) error {
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	before, err := waysOf(ctx, cmd.ErrOrStderr(), older)
	if err != nil {
		return err
	}
	after, err := waysOf(ctx, cmd.ErrOrStderr(), newer)
	if err != nil {
		return err
	}
	d := reachDifference{append([]reach.Way{}, reach.Gained(before, after)...), append([]reach.Way{}, reach.Gained(after, before)...)}
	out := cmd.OutOrStdout()
	switch {
	case asJSON:
		err = printJSON(out, d)
	case len(d.Gained)+len(d.Lost) == 0:
		_, err = io.WriteString(out, "Nobody can reach more or less than before.\n")
	default:
		var rows [][]string
		for _, w := range d.Gained {
			rows = append(rows, append([]string{"+"}, rowOf(w)...))
		}
		for _, w := range d.Lost {
			rows = append(rows, append([]string{"-"}, rowOf(w)...))
		}
		err = table(out, rows)
	}
	if err != nil {
		return err
	}
	if len(d.Gained) > 0 {
		return &exitError{code: exitGained}
	}
	return nil
}

// waysOf returns the ways in which callers could reach something outside the sandboxes, if a server served the tools of a configuration file.
func waysOf(ctx context.Context, stderr io.Writer, file string) ([]reach.Way, error) {
	c := check{config: file}
	all, err := c.look(ctx, stderr, nil)
	if err != nil {
		return nil, err
	}
	if all.Refused > 0 {
		fmt.Fprintf(stderr, "%s: a server would refuse %d of %d files, so their tools are left out: toolsrv check --config says why\n", oneLine(file), all.Refused, len(all.Files))
	}
	routes, err := wasmtools.NewRouteTable()
	if err != nil {
		return nil, err
	}
	if err := routes.Configure(all.tools, nil, wasmtools.Configuration{Policy: configured.Policy(all.settings)}); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	principals, err := configured.Principals(all.settings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ways, _ := reach.Ways(admin.Callable(routes.Current().Routes(), all.granted.Reaches), reach.Options{}, principals...)
	return ways, nil
}
