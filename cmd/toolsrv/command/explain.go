package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
)

// exitRefused is the exit code of `toolsrv explain` if a call would be refused. It is stable.
const exitRefused = 3

func newExplain() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use:   "explain PRINCIPAL TOOL",
		Short: "Show why a caller of a running server can call a tool, or can't",
		Long: `Show rule by rule why a caller can call a tool, or can't: its scopes, whether the tool exists,
whether it is switched on, and whether it was granted what it needs. The callers themselves only
learn that there is no such tool. The exit code is 3 if a call would be refused.
`,
		Example: `  toolsrv explain ci math/add`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("name a caller, such as everybody or token-1, and a tool, such as math/add")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		answer, err := c.Do(ctx, "explain", admin.ExplainArguments{Principal: args[0], Tool: args[1]}, "")
		if err != nil {
			return err
		}
		var e admin.Explanation
		if err := answer.Into(&e); err != nil {
			return err
		}
		if o.asJSON {
			err = printJSON(out, answer.Result)
		} else {
			err = printExplanation(out, args[0], args[1], &e)
		}
		if err == nil && !e.Allowed {
			return &exitError{code: exitRefused}
		}
		return err
	})
}

func printExplanation(w io.Writer, principal, tool string, e *admin.Explanation) error {
	verdict := "can call"
	if !e.Allowed {
		verdict = "can't call"
	}
	if _, err := fmt.Fprintf(w, "%s %s %s:\n", oneLine(principal), verdict, oneLine(tool)); err != nil {
		return err
	}
	var rows [][]string
	for _, r := range e.Rules {
		holds := "no"
		if r.Holds {
			holds = "yes"
		}
		rows = append(rows, []string{"  " + r.Rule, holds, r.Because})
	}
	return table(w, rows)
}
