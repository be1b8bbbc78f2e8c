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
)

// namesHelp is the text about what can be switched.
const namesHelp = `NAME is a tool such as math/add, or a namespace such as math or 'math/*', including tools that are
added to it later; '*' is every tool.`

func newSwitches() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use:     "switches",
		Short:   "List what was switched on and off in a running server",
		Long:    "List what operators have switched on and off in a running server, by whom, and when.",
		Example: "  toolsrv switches\n  toolsrv switches --json",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "switches", struct{}{}, func(w io.Writer, s *admin.Switches) error {
			if len(s.Switches) == 0 {
				_, err := io.WriteString(w, "Nothing has been switched: the configuration decides.\n")
				return err
			}
			rows := [][]string{{"SCOPE", "SWITCHED", "SINCE", "WHO", "REASON"}}
			for _, one := range s.Switches {
				to := "off"
				if one.Enabled {
					to = "on"
				}
				if one.Passing {
					to += " until the restart"
				}
				rows = append(rows, []string{one.Scope, to, stamp(one.Since), one.Who, one.Reason})
			}
			return table(w, rows)
		})
	})
}

func newDisable() *cobra.Command {
	return newSwitch("disable", "Switch tools of a running server off",
		"Switch tools of a running server off. Running calls finish; later ones get the reason as their\nanswer. It lasts over restarts, until enable or reset.",
		"  toolsrv disable math/add --reason 'wrong for negative numbers'\n  toolsrv disable math --until-restart")
}

func newEnable() *cobra.Command {
	return newSwitch("enable", "Switch tools of a running server on",
		"Switch tools of a running server on, even those that its configuration disables. It lasts over\nrestarts, until disable or reset.",
		"  toolsrv enable math/add\n  toolsrv enable 'math/*'")
}

func newSwitch(name, short, long, example string) *cobra.Command {
	var o asking
	var in admin.Switched
	cmd := newAsking(&o, &cobra.Command{
		Use:               name + " NAME...",
		Short:             short,
		Long:              long + "\n\n" + namesHelp,
		Example:           example,
		Args:              someNames,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Names = args
		return ask(ctx, &o, c, out, name, in, showSwitching)
	})
	o.addExpected(cmd)
	cmd.Flags().StringVar(&in.Reason, "reason", "", "the reason, which callers of a disabled tool are told")
	cmd.Flags().BoolVar(&in.Passing, "until-restart", false, "only until the server restarts")
	completeFlag(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}

func newReset() *cobra.Command {
	var o asking
	cmd := newAsking(&o, &cobra.Command{
		Use:               "reset NAME...",
		Short:             "Let the configuration decide again whether tools are on",
		Long:              "Undo what was switched on and off in a running server, so that its configuration\ndecides again.\n\n" + namesHelp,
		Example:           "  toolsrv reset math/add\n  toolsrv reset '*'",
		Args:              someNames,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "reset", admin.Reset{Names: args}, showSwitching)
	})
	o.addExpected(cmd)
	return cmd
}

// someNames takes one argument or more.
func someNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("NAME is missing: name a tool or a namespace, as in %s", strings.TrimSpace(firstExample(cmd)))
	}
	for _, arg := range args {
		if arg == "" {
			return errors.New("a NAME is empty: name a tool or a namespace")
		}
	}
	return nil
}

func showSwitching(w io.Writer, s *admin.Switching) error {
	if !s.Changed {
		fmt.Fprintln(w, "Nothing to change.")
	}
	rows := [][]string{{"PATH", "STATE", "WHY"}}
	for _, tool := range s.Tools {
		rows = append(rows, []string{tool.Path, tool.State, tool.Why.String()})
	}
	if len(rows) == 1 {
		_, err := io.WriteString(w, "No tool matches at the moment.\n")
		return err
	}
	return table(w, rows)
}
