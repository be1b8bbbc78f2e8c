package command

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// The exit codes of the commands that ask a running server, in addition to those of all commands. They are stable.
const (
	exitNoServer   = 20 // nobody answers
	exitNotAllowed = 21 // the token is missing or wrong, or lacks the role
	exitNotFound   = 22 // there is no such tool, token or other object
	exitChanged    = 23 // --if-match names another version
)

// asking holds the flags of the commands that ask a running server.
type asking struct {
	config string
	server string
	asJSON bool
	// expected is the version that the object must have before the command changes it, or empty.
	expected string
	// stderr is the standard error of the command, once it runs.
	stderr io.Writer
}

// askingHelp is the text about how these commands find the server.
const askingHelp = `
The server is the one with the configuration --config, or ./toolsrv.toml. The command asks it over
the socket admin.sock in its state directory, as the user it runs as, or as root. To ask another
server, give its address with --server, and in TOOLSRV_TOKEN a token with the scope admin, or
admin:read to look only.

Exit codes: 0 done, 1 failed, 2 wrong usage, 20 no server answers, 21 not allowed, 22 not found, 23
somebody else has changed it.`

// newAsking returns the command for an operation, with its flags. run gets the client and the flags' values.
func newAsking(o *asking, cmd *cobra.Command, run func(ctx context.Context, c *client.Client, args []string, out io.Writer) error) *cobra.Command {
	cmd.Long += "\n" + askingHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		c, err := o.client()
		if err != nil {
			return err
		}
		defer c.Close()
		o.stderr = cmd.ErrOrStderr()
		return failedAsking(run(ctx, c, args, cmd.OutOrStdout()))
	}
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&o.config), "config", "configuration `file` of the server (default toolsrv.toml, if it exists)")
	flags.StringVar(&o.server, "server", "", "`URL` of the server, asked with the token in "+tokenVariable)
	flags.BoolVar(&o.asJSON, "json", false, "print the server's answer as JSON")
	completeFlag(cmd, "config", cobra.FixedCompletions([]cobra.Completion{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "server", cobra.NoFileCompletions)
	return cmd
}

// addExpected adds the flag --if-match to a command that changes something.
func (o *asking) addExpected(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.expected, "if-match", "", "`version` that the object must have; otherwise nothing is changed")
	completeFlag(cmd, "if-match", cobra.NoFileCompletions)
}

// client returns a client of the server that the flags name.
func (o *asking) client() (*client.Client, error) {
	switch {
	case o.server != "" && o.config != "":
		return nil, &usageError{errors.New("give either --config or --server")}
	case o.server != "":
		c, err := client.OverHTTP(o.server, os.Getenv(tokenVariable))
		if err != nil {
			return nil, &usageError{err}
		}
		return c, nil
	}
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	path := socket.Of(c)
	if path == "" {
		return nil, &exitError{exitNoServer, errors.New("the server has no admin socket: its configuration needs state.directory or admin.socket; or ask it at its address with --server")}
	}
	return client.OverSocket(path)
}

// load reads the server's configuration.
func (o *asking) load() (*config.Config, error) {
	name := o.config
	if name == "" {
		if _, err := os.Stat(defaultConfig); err != nil {
			c := config.Default()
			implyState(c, ".")
			return c, nil
		}
		name = defaultConfig
	}
	return loadConfig(name)
}

// ask has the server do an operation, and prints the result as JSON or with show.
func ask[Out any](ctx context.Context, o *asking, c *client.Client, out io.Writer, name string, arguments any, show func(io.Writer, *Out) error) error {
	answer, err := c.Do(ctx, name, arguments, o.expected)
	return shown(o, out, answer, err, show)
}

// shown prints an answer, if there is one, as JSON or with show.
func shown[Out any](o *asking, out io.Writer, answer *client.Answer, err error, show func(io.Writer, *Out) error) error {
	if err != nil {
		return err
	}
	if o.asJSON {
		return printJSON(out, answer.Result)
	}
	var result Out
	if err := answer.Into(&result); err != nil {
		return err
	}
	return show(out, &result)
}

// failedAsking returns an error with the exit code that says what happened.
func failedAsking(err error) error {
	if errors.Is(err, client.ErrNoServer) {
		return &exitError{exitNoServer, err}
	}
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if !ok {
		return err
	}
	said := errors.New(strings.TrimSuffix(failureText(failed), "\n"))
	switch failed.Code {
	case wasmtools.CodeUnauthorized, wasmtools.CodeForbidden, wasmtools.CodeHostNotAllowed, wasmtools.CodeOriginNotAllowed:
		return &exitError{exitNotAllowed, said}
	case wasmtools.CodeNotFound:
		return &exitError{exitNotFound, said}
	case wasmtools.CodeChanged:
		return &exitError{exitChanged, said}
	case wasmtools.CodeInvalidArguments:
		return &exitError{exitInvalidArguments, said}
	}
	return said
}

// table prints rows in columns, without blanks at the end of a line. (A column of text/tabwriter ends where a row has no cell after it.)
func table(w io.Writer, rows [][]string) error {
	var widths []int
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for at, cell := range row {
			cell = oneLine(cell)
			cells[i] = append(cells[i], cell)
			if at == len(widths) {
				widths = append(widths, 0)
			}
			widths[at] = max(widths[at], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range cells {
		line := ""
		for at, cell := range row {
			line += cell + strings.Repeat(" ", widths[at]-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
