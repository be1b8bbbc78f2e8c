// Package command is the command line of toolsrv: one file for each subcommand.
//
// Data goes to standard output, logs and errors go to standard error. A command ends with exit code 0 when it is
// done, 1 when it failed (a wrong configuration file, an address in use), and 2 when it was called wrongly (an unknown
// command or flag). `call` and `bench` have further codes that say how a call failed.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a usage mistake that only the command itself could find.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitError ends a command with an exit code of its own. If err is nil, the command has already printed the reason.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Main runs toolsrv with its arguments, without the program's name, and returns the exit code. Nothing runs any more when it returns, unless a second
// SIGINT or SIGTERM has cut a command short.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	started := false
	root := newRoot(stdin, stdout, stderr)
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own arguments
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return exitDone
	}
	if cmd == root && !started && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		err = unknownCommand(root, args[0]) // the command does not exist, so its flags don't matter
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			fmt.Fprintf(stderr, "toolsrv: %s\n", text.Escape(exit.err.Error()))
		}
		return exit.code
	}
	fmt.Fprintf(stderr, "%s%s\n", speaker(err), text.Escape(err.Error()))
	// Before a command starts, only its flags or arguments can be wrong.
	var usage *usageError
	if !started || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// speaker returns the prefix of an error's line. An error in a script begins with its place, so that editors and terminals find it.
func speaker(err error) string {
	if isAuthors(err) {
		return ""
	}
	return "toolsrv: "
}

// isAuthors reports whether an error is in a script, so that it is for the script's author.
func isAuthors(err error) bool {
	_, built := errors.AsType[*script.Error](err)
	_, ran := errors.AsType[*toolfile.ScriptError](err)
	return built || ran
}

func newRoot(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "toolsrv",
		Short: "Serve WebAssembly tools over REST and MCP",
		Long: `toolsrv serves tools to programs and to language-model agents. A tool is a .wasm
file with its JSON Schema inside; every call runs in a sandbox of its own.

Exit codes: 0 done, 1 failed, 2 wrong usage.`,
		SilenceErrors:              true, // Main prints them
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(stdin)
	root.SetOut(stdout) // set before the completion command is made, which uses it
	root.SetErr(stderr)
	root.AddCommand(newOpenAPI(), newMCP(), newVersion(), newLicenses(), newInit(), newUp(), newNew(), newBuild(), newDev(),
		newPack(), newPush(), newPull(), newSign(), newVerify(), newSearch(), newLock(), newUpdate(), newInspect(), newCall(), newTest(), newBench(), newCheck(), newStatus(), newTools(), newTokens(), newSecrets(), newKV(), newSelf(), newReach(), newExplain(), newAudit(), newState(), newSwitches(), newEnable(), newDisable(), newReset(), newReload(), newGoroutines(), newPut(), newRemove(), newHistory(), newRollback(), newSlow(), newTop(), newRefused(), newLogs(), newEvents(), newReady(), newCache(), newManPages(), newCollectScript(), newCompileModule())
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd()
	group(root)
	addVersionFlag(root)
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && cmd.RunE == nil {
			group(cmd)
		}
	}
	return root
}

// badFlag returns the error for a wrong flag. For an unknown flag it names the command's flags; for a wrong value it says what to write.
func badFlag(cmd *cobra.Command, err error) error {
	if typed, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		return fmt.Errorf("%w%s", err, otherFlags(cmd, typed))
	}
	if typed, unknown := strings.CutPrefix(err.Error(), "unknown shorthand flag: '"); unknown {
		letter, _, _ := strings.Cut(typed, "'")
		return fmt.Errorf("%w%s", err, otherFlags(cmd, letter))
	}
	cause := errors.Unwrap(err)
	if cause == nil {
		return err
	}
	want := ""
	switch wrong, isNumber := errors.AsType[*strconv.NumError](cause); {
	case isNumber && wrong.Func == "ParseBool":
		want = "write true or false"
	case isNumber && errors.Is(cause, strconv.ErrRange):
		want = "the number is too large"
	case isNumber && wrong.Func == "ParseFloat":
		want = "write a number"
	case isNumber:
		want = "write a whole number"
	case strings.HasPrefix(cause.Error(), "time: "):
		want = "write a time such as 200ms, 5s or 1m30s"
	default:
		return err
	}
	return errors.New(strings.TrimSuffix(err.Error(), cause.Error()) + want)
}

// flagsElsewhere maps the names of flags in other programs to the names here.
var flagsElsewhere = map[string]string{"port": "address", "p": "address", "host": "address", "bind": "address", "listen": "address", "format": "json", "url": "server"}

// otherFlags returns which flags may have been meant, or which flags exist.
func otherFlags(cmd *cobra.Command, typed string) string {
	var names []string
	for line := range strings.Lines(cmd.Flags().FlagUsages()) { // each line is like "  -d, --duration time   for how long"
		if _, name, ok := strings.Cut(line, "--"); ok {
			name, _, _ = strings.Cut(name, " ")
			names = append(names, strings.TrimSpace(name))
		}
	}
	meant := flagsElsewhere[typed]
	if !slices.Contains(names, meant) {
		meant = text.Nearest(typed, names)
	}
	switch {
	case meant != "":
		return "; did you mean --" + meant + "?"
	case !cmd.HasParent():
		return ": flags come after a command, as in toolsrv openapi --config toolsrv.toml"
	}
	return ": " + cmd.CommandPath() + " has --" + strings.Join(names, ", --")
}

// group makes a command that only has subcommands refuse to be called without one.
func group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return &usageError{unknownCommand(cmd, args[0])}
		case cmd.HasParent():
			return &usageError{fmt.Errorf("the command is missing: %s has %s", cmd.CommandPath(), commandList(cmd))}
		}
		// A person who types this wants to know what to type next. In a script, it is a mistake: a variable may be empty.
		fmt.Fprint(cmd.ErrOrStderr(), welcome("."))
		return &exitError{code: exitUsage}
	}
}

// addVersionFlag gives the root command the flag --version, which does the same as the command version.
func addVersionFlag(root *cobra.Command) {
	version := root.Flags().BoolP("version", "v", false, "version for toolsrv")
	run := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version {
			return newVersion().RunE(cmd, nil)
		}
		return run(cmd, args)
	}
}

// lists are names that other programs give to their commands for listing tools.
var lists = []string{"list", "ls"}

// servers are names that other programs give to their commands for serving.
var servers = []string{"run", "start", "server", "daemon", "listen"}

// unknownCommand returns the error for a subcommand that cmd does not have, with a suggestion.
func unknownCommand(cmd *cobra.Command, typed string) error {
	if !cmd.HasSubCommands() {
		return fmt.Errorf("unexpected argument %q: %s has no subcommands", typed, cmd.CommandPath())
	}
	says := fmt.Sprintf("unknown command %q for %s", typed, cmd.CommandPath())
	if slices.Contains(lists, typed) && !cmd.HasParent() {
		return errors.New(says + ": inspect FILE shows the tools of a file, check --config FILE those of a server's directory, and tools those of a running server")
	}
	if slices.Contains(servers, typed) && !cmd.HasParent() {
		return errors.New(says + ": toolsrv up serves a folder while you work on it, and toolsrv openapi (or serve) serves a configuration to others")
	}
	names := cmd.SuggestionsFor(typed)
	if same := strings.ToLower(typed); slices.Contains(names, same) {
		names = []string{same}
	}
	if len(names) > 0 {
		return errors.New(says + "; did you mean " + strings.Join(names, " or ") + "?")
	}
	return errors.New(says + ": it has " + commandList(cmd))
}

// commandList returns a text with the names of cmd's subcommands.
func commandList(cmd *cobra.Command) string {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return strings.Join(names, ", ")
}

// newHelp replaces cobra's help command, which returns no error for an unknown command.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return &usageError{err}
			}
			if len(rest) > 0 {
				return &usageError{unknownCommand(cmd, rest[0])}
			}
			cmd.InitDefaultHelpFlag() // cobra adds it only to commands that run
			return cmd.Help()
		},
	}
}
