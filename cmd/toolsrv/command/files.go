package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/text"
)

func newPut() *cobra.Command {
	var o asking
	var in admin.FileArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "put FILE [NAME]",
		Short: "Put a module or a script into a tools directory of a running server",
		Long: `Put a module or a script into a tools directory of a running server whose configuration has
[admin] upload = true. The server checks it as toolsrv check does, and accepts all of it or
nothing. The command ends once the new version is served, or says why it is not.

A script is one file: what it imports must be on the server already. NAME is the file's path in
the directory, such as math/add.wasm or math/add.py; the default is FILE's own name.

--dry-run has the server check the file and say what would change. With the version that it
prints, --if-match replaces only the file that was there then.`,
		Example: `  toolsrv put add.wasm math/add.wasm
  toolsrv put add.py math/add.py
  TOOLSRV_TOKEN=... toolsrv put add.wasm --server https://tools.example.com`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("name a .wasm file or a script, and optionally its path in the directory")
			}
			return nil
		},
		ValidArgsFunction: completeFiles,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file: name a .wasm file or a script, or make one file of a folder with toolsrv build", args[0])
		}
		if err != nil {
			return err
		}
		in.Name = filepath.Base(args[0])
		if len(args) == 2 {
			in.Name = args[1]
		}
		answer, err := c.Put(ctx, "put", in, o.expected, file, info.Size())
		return shown(&o, out, answer, err, showPlaced("serves"))
	})
	o.addExpected(cmd)
	addDirectory(cmd, &in)
	return cmd
}

func newRemove() *cobra.Command {
	var o asking
	var in admin.FileArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a module or a script from a tools directory of a running server",
		Long: `Remove a module or a script from a tools directory of a running server whose configuration has
[admin] upload = true. Running calls finish. NAME is its path in the directory. toolsrv rollback
NAME brings it back. --dry-run says which tools would go.`,
		Example:           "  toolsrv remove math/add.wasm",
		Args:              oneName,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Name = args[0]
		return ask(ctx, &o, c, out, "remove", in, showPlaced("removed"))
	})
	o.addExpected(cmd)
	addDirectory(cmd, &in)
	return cmd
}

func addDirectory(cmd *cobra.Command, in *admin.FileArguments) {
	cmd.Flags().StringVar(&in.Directory, "directory", "", "`directory` on the server, as its configuration calls it, or the name of its source; needed if the server has several")
	completeFlag(cmd, "directory", cobra.NoFileCompletions)
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "change nothing, and say what would change")
}

// oneName takes one argument.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("name one file, as in %s", firstExample(cmd))
	}
	return nil
}

// showPlaced returns a function that prints what was done with a file.
func showPlaced(what string) func(io.Writer, *admin.Placed) error {
	return func(w io.Writer, p *admin.Placed) error {
		if !p.Changed {
			fmt.Fprintln(w, "Nothing to change.")
		}
		if p.DryRun && p.Changed {
			fmt.Fprintf(w, "Would change (version %s):\n", cmp.Or(p.Before, "none"))
		}
		rows := [][]string{{"file", p.File}}
		if p.Digest != "" {
			rows = append(rows, []string{"digest", text.ShortDigest(p.Digest)})
		}
		if p.Before != "" && p.Before != p.Digest {
			rows = append(rows, []string{"before", text.ShortDigest(p.Before)})
		}
		for _, list := range []struct {
			what string
			all  []string
		}{{what, p.Tools}, {"removed", p.Gone}, {"not granted", p.Ungranted}, {"warning", p.Warnings}} {
			for _, one := range list.all {
				rows = append(rows, []string{list.what, one})
			}
		}
		return table(w, rows)
	}
}

func newHistory() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use:   "history [PATH]",
		Short: "List the versions of files that a running server keeps",
		Long: `List the versions of a file that a running server keeps, or of every file with several versions, or
that was removed. The last five of each are kept, in the server's state directory.

PATH is a file, or a tool in it, such as math/add.wasm or math/add.`,
		Example: "  toolsrv history math/add\n  toolsrv history --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("name one file or tool")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		var in admin.HistoryArguments
		if len(args) == 1 {
			in.Path = args[0]
		}
		return ask(ctx, &o, c, out, "history", in, showHistory)
	})
}

func showHistory(w io.Writer, h *admin.History) error {
	rows := [][]string{{"FILE", "VERSION", "SINCE", "SIZE", "STATE"}}
	for _, f := range h.Files {
		for i, v := range f.Versions {
			state := ""
			switch {
			case f.Removed != nil && i == 0:
				state = "removed"
				if f.Removed.Who != "" && f.Removed.Since != nil {
					state += " by " + f.Removed.Who + ", " + stamp(*f.Removed.Since)
				}
			case v.Served && f.RolledBack != nil:
				state = "served, rolled back by " + f.RolledBack.Who
				if f.RolledBack.Reason != "" {
					state += ": " + f.RolledBack.Reason
				}
			case v.Served:
				state = "served"
			case f.RolledBack != nil && v.Digest == f.RolledBack.Over:
				state = "the file's own"
			}
			rows = append(rows, []string{nearby(f.File), text.ShortDigest(v.Digest), stamp(v.Since), text.Size(v.Size), state})
		}
	}
	if len(rows) == 1 {
		_, err := io.WriteString(w, "No earlier versions are kept.\n")
		return err
	}
	return table(w, rows)
}

func newRollback() *cobra.Command {
	var o asking
	var in admin.RollbackArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "rollback PATH [VERSION]",
		Short: "Have a running server serve an earlier version of a file",
		Long: `Have a running server serve an earlier version of a module or a script that it has kept. The file
itself stays as it is: once it changes, the new content is served. Until then the rollback stays,
even after a restart. A removed file is put back, if the server's configuration has [admin] upload
= true.

PATH is a file, or a tool in it. VERSION is the beginning of a digest that toolsrv history shows,
or of the file's own; by default the version before the one that is served, or the last one of a
removed file.`,
		Example: "  toolsrv rollback math/add\n  toolsrv rollback math/add 9f86d081 --reason 'wrong for negative numbers'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("name a file or tool, and optionally a version that toolsrv history lists")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Path = args[0]
		if len(args) == 2 {
			in.Version = args[1]
		}
		return ask(ctx, &o, c, out, "rollback", in, func(w io.Writer, r *admin.RollingBack) error {
			if !r.Changed {
				fmt.Fprintln(w, "Nothing to change.")
			}
			rows := [][]string{{"file", r.File}, {"digest", text.ShortDigest(r.Digest)}, {"before", text.ShortDigest(r.Before)}}
			for _, path := range r.Tools {
				rows = append(rows, []string{"serves", path})
			}
			return table(w, rows)
		})
	})
	o.addExpected(cmd)
	cmd.Flags().StringVar(&in.Reason, "reason", "", "the reason, for the audit and the history")
	completeFlag(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}
