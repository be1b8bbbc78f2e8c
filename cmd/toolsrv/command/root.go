// Package command is the command line of toolsrv: one file for each subcommand.
//
// Data goes to standard output, logs and errors go to standard error. A command ends with exit code 0 when it is
// done, 1 when it failed (a configuration file that is wrong, an address in use), and 2 when it was called wrongly
// (an unknown command or flag).
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a wrong call of a command.
type usageError struct {
	command string // path of the command whose help explains it
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Main runs toolsrv with its arguments, without the program's name, and returns the exit code. Only where a second
// SIGINT or SIGTERM cut a command short does anything still run when it returns.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "toolsrv: %v\n", err)
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", usage.command)
		return exitUsage
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "toolsrv",
		Short: "Serve WebAssembly tools over HTTP",
		Long: `toolsrv serves tools to programs and to language-model agents. A tool is a .wasm
file with its JSON Schema inside; every call of it runs in a sandbox of its own.

Exit codes: 0 done, 1 failed, 2 wrong usage.`,
		Args:          subcommand,
		SilenceErrors: true, // Main prints them
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{cmd.CommandPath(), errors.New("no command given: say what to do, such as toolsrv openapi")}
		},
		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{cmd.CommandPath(), err}
	})
	root.AddCommand(newOpenAPI(), newVersion())
	return root
}

// subcommand refuses what is no command, and names those that are spelled alike.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		text += "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return &usageError{cmd.CommandPath(), errors.New(text)}
}

// noArguments refuses arguments that are no flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{cmd.CommandPath(), fmt.Errorf("unexpected argument %q: %s takes flags only", args[0], cmd.CommandPath())}
}
