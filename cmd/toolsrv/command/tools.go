package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/text"
)

func newTools() *cobra.Command {
	var o asking
	var in admin.ToolsArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "tools [PATTERN]",
		Short: "List the tools of a running server, and why each can be called or not",
		Long: `List the tools of a running server with their versions, digests and files. --all also lists tools
that can't be called, and says why for each: the line of the configuration, who switched it and
when, or which grant it lacks.

PATTERN names a tool, a namespace, or a pattern such as 'math/*'.`,
		Example: `  toolsrv tools --all
  toolsrv tools math --config /etc/toolsrv/toolsrv.toml
  TOOLSRV_TOKEN=... toolsrv tools --json --server https://tools.example.com`,
		Args:              onePattern,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		if len(args) == 1 {
			in.Pattern = args[0]
		}
		return ask(ctx, &o, c, out, "tools", in, func(w io.Writer, t *admin.Tools) error {
			rows := [][]string{{"PATH", "STATE", "VERSION", "DIGEST", "FILE", "WHY"}}
			if len(t.Tools) == 0 {
				_, err := io.WriteString(w, "No tool can be called: toolsrv tools --all lists all tools, and toolsrv status lists the files.\n")
				return err
			}
			for _, tool := range t.Tools {
				rows = append(rows, []string{tool.Path, tool.State, tool.Version, text.ShortDigest(tool.Digest), nearby(tool.File), tool.Why.String()})
			}
			return table(w, rows)
		})
	})
	cmd.Flags().BoolVar(&in.All, "all", false, "also list the tools that can't be called")
	return cmd
}
