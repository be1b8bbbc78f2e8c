package command

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
)

func newKV() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kv",
		Short: "List and erase what tools keep for each caller",
		Long: `List and erase what tools of a running server keep for each caller separately, if their grant has
kv = {size = ..., by = "principal"}.`,
		Args: noArguments,
	}
	cmd.AddCommand(newKVList(), newKVErase())
	return cmd
}

func newKVList() *cobra.Command {
	var o asking
	var in admin.KeptArguments
	cmd := newAsking(&o, &cobra.Command{
		Use: "list", Short: "List what is kept",
		Long:    "List the callers for which tools keep values, and how much.",
		Example: "  toolsrv kv list\n  toolsrv kv list --json",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "kv list", in, showKept)
	})
	cmd.Flags().StringVar(&in.After, "after", "", "continue after this `place`, which the previous list named")
	completeFlag(cmd, "after", cobra.NoFileCompletions)
	return cmd
}

func newKVErase() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use: "erase PRINCIPAL", Short: "Erase what is kept for one caller",
		Long:    "Erase everything that tools keep for one caller, in every namespace, and say what it was. Write the\ncaller as toolsrv kv list shows it.",
		Example: "  toolsrv kv erase issued+ann",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return errors.New("name one PRINCIPAL, such as issued+ann")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "kv erase", admin.ErasedArguments{Principal: args[0]}, showKept)
	})
}

func showKept(w io.Writer, all *admin.AllKept) error {
	if len(all.Kept) == 0 {
		_, err := io.WriteString(w, "Nothing is kept for single callers.\n")
		return err
	}
	rows := [][]string{{"PRINCIPAL", "NAMESPACE", "ENTRIES", "BYTES"}}
	for _, k := range all.Kept {
		rows = append(rows, []string{k.Principal, k.Namespace, strconv.FormatInt(k.Entries, 10), strconv.FormatInt(k.Bytes, 10)})
	}
	if err := table(w, rows); err != nil || all.More == "" {
		return err
	}
	_, err := io.WriteString(w, "There are more: toolsrv kv list --after '"+oneLine(all.More)+"'\n")
	return err
}
