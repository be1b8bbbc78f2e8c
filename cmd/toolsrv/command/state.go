package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/text"
)

// stateFolder is where a server keeps its state, beside its configuration.
const stateFolder = ".toolsrv"

// implyState sets the state directory of a configuration that names none. It is the directory that systemd names, or else a folder beside the
// configuration. Programs that embed a server have no such default: they own their working directory and their environment.
func implyState(c *config.Config, beside string) {
	if c.State.Directory != "" {
		return
	}
	given, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":") // systemd may name several: the first one counts
	if given == "" {
		given = filepath.Join(beside, stateFolder)
	}
	c.State.Directory, c.State.Implied = given, true
}

func newState() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Back up, restore and check what a server keeps",
		Long: `Back up, restore and check what a server keeps: keys and values of tools, tokens, switches
and the audit, all in one file.`,
	}
	cmd.AddCommand(newStateBackup(), newStateRestore(), newStateCheck())
	group(cmd)
	return cmd
}

// stateFlags gives a command the flag with the server's configuration.
func stateFlags(cmd *cobra.Command, o *asking) *cobra.Command {
	cmd.Flags().Var((*fileFlag)(&o.config), "config", "configuration `file` of the server (default toolsrv.toml, if it exists)")
	completeFlag(cmd, "config", cobra.FixedCompletions([]cobra.Completion{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}

func newStateBackup() *cobra.Command {
	var o asking
	return stateFlags(&cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the state of a server into a file, running or not",
		Long: `Copy the state of a server into FILE, as it is at one moment, and check the copy. A running server
makes the copy when asked over its socket, and keeps serving. An existing FILE is replaced once the
copy is complete.`,
		Example: `  toolsrv state backup /backup/toolsrv.db --config /etc/toolsrv/toolsrv.toml`,
		Args:    takes(1, "FILE is missing: name a copy of the state"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			size, err := backUp(ctx, &o, args[0])
			if err == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is a copy of the state, %s.\n", oneLine(args[0]), text.RoundSize(size))
			}
			return failedAsking(err)
		},
	}, &o)
}

// backUp copies the state into a file, and returns the size of the file.
func backUp(ctx context.Context, o *asking, name string) (size int64, err error) {
	temp, err := os.CreateTemp(filepath.Dir(name), ".toolsrv-backup-")
	if err != nil {
		return 0, fmt.Errorf("write a backup: %w", err)
	}
	defer os.Remove(temp.Name())
	if err := errors.Join(copyState(ctx, o, temp), temp.Sync(), temp.Close()); err != nil {
		return 0, err
	}
	f, err := core.OpenStateFile(temp.Name())
	if err != nil {
		return 0, fmt.Errorf("the copy is unusable: %w", err)
	}
	if err := errors.Join(f.Close(), os.Rename(temp.Name(), name)); err != nil {
		return 0, err
	}
	return f.Size, nil
}

// copyState copies the state of a running server, or the state file if no server runs.
func copyState(ctx context.Context, o *asking, w io.Writer) error {
	c, err := o.load()
	if err != nil {
		return err
	}
	if c.State.URL != "" {
		return core.ErrInNATS
	}
	path := core.StateFile(c.State.Directory)
	f, err := core.OpenStateFile(path)
	switch {
	case err == nil:
		_, err = f.WriteTo(w)
		return errors.Join(err, f.Close())
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w", path, core.ErrNoState)
	case !errors.Is(err, core.ErrStateInUse):
		return err
	}
	asked, err := o.client()
	if err != nil {
		return err
	}
	defer asked.Close()
	if err := asked.Copy(ctx, "state backup", w); errors.Is(err, client.ErrNoServer) {
		return fmt.Errorf("%s is in use, but %w", path, err)
	} else if err != nil {
		return err
	}
	return nil
}

func newStateRestore() *cobra.Command {
	var o asking
	return stateFlags(&cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the state of a stopped server from a backup",
		Long: `Replace the state of a stopped server with a copy of FILE. Nothing changes unless FILE is intact.
The previous state is kept beside it. The audit of the restored state records this. Run it as the
server's user.`,
		Example: `  toolsrv state restore /backup/toolsrv.db --config /etc/toolsrv/toolsrv.toml`,
		Args:    takes(1, "FILE is missing: name a copy of the state"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.load()
			if err != nil {
				return err
			}
			if c.State.URL != "" {
				return core.ErrInNATS
			}
			who, err := socket.User(os.Getuid())
			if err != nil {
				return err
			}
			kept, err := core.RestoreState(cmd.Context(), args[0], c.State.Directory, who.String())
			if errors.Is(err, core.ErrStateInUse) {
				return fmt.Errorf("%w: stop the server first", err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "The state is restored from %s.\n", oneLine(args[0]))
			fmt.Fprintln(cmd.ErrOrStderr(), "Tokens that have been revoked or rotated since the backup are valid again: see toolsrv tokens list.")
			if kept != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "The previous state is now %s.\n", oneLine(kept))
			}
			return nil
		},
	}, &o)
}

func newStateCheck() *cobra.Command {
	var o asking
	cmd := stateFlags(&cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a backup, or the state of a server",
		Long: `Read all of the backup FILE, and say what is in it. The exit code is 1 if it is damaged, from
another program, or from a newer version. Without FILE, it checks the server's state; if the server
is running, it checks a copy.`,
		Example: `  toolsrv state check /backup/toolsrv.db
  toolsrv state check --config /etc/toolsrv/toolsrv.toml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			name := ""
			if len(args) == 1 {
				name = args[0]
			} else {
				dir, err := os.MkdirTemp("", "toolsrv-state-")
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				name = filepath.Join(dir, "copy")
				if _, err := backUp(ctx, &o, name); err != nil {
					return failedAsking(err)
				}
			}
			return checkState(cmd.OutOrStdout(), name, o.asJSON)
		},
	}, &o)
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print what is in it as JSON")
	return cmd
}

// A stateContent describes the content of one space of a state.
type stateContent struct {
	Space   string `json:"space"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
}

// checkState reads a whole state file, and prints a summary of its content.
func checkState(w io.Writer, name string, asJSON bool) error {
	f, err := core.OpenStateFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	all := []stateContent{}
	rows := [][]string{{"SPACE", "ENTRIES", "SIZE"}}
	for _, c := range f.Contents {
		all = append(all, stateContent{c.Space, c.Entries, c.Bytes})
		rows = append(rows, []string{c.Space, fmt.Sprint(c.Entries), text.RoundSize(c.Bytes)})
	}
	if asJSON {
		return printJSON(w, map[string]any{"size": f.Size, "spaces": all})
	}
	return table(w, rows)
}
