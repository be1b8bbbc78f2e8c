package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/naming"
)

// fileAnd accepts a file, and after it at most "most" arguments, which "what" describes.
func fileAnd(most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return fmt.Errorf("FILE is missing: name a .wasm file, a script or the folder of a project, as in %s", firstExample(cmd))
		case strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://"):
			return fmt.Errorf("FILE is an address: %s takes a file. Send requests to a server with another program, such as curl", cmd.CommandPath())
		case len(args) > 1+most && most == 0:
			return fmt.Errorf("unexpected argument %q: %s takes one file", args[1], cmd.CommandPath())
		case len(args) > 1+most:
			return fmt.Errorf("unexpected argument %q: %s takes a file and %s", args[1+most], cmd.CommandPath(), what)
		}
		return nil
	}
}

func firstExample(cmd *cobra.Command) string {
	return firstLine(cmd.Example)
}

// toolAndBody splits arguments into a tool's name and the JSON for it. Either may be left out; body is nil if the arguments are.
func toolAndBody(args []string) (name string, body *string, err error) {
	if len(args) > 0 && args[0] == "" {
		return "", nil, &usageError{errors.New("TOOL is empty: name a tool, or leave it out if the file has only one")}
	}
	if len(args) > 0 && isToolName(args[0]) {
		name, args = args[0], args[1:]
	}
	switch len(args) {
	case 0:
		return name, nil, nil
	case 1:
		return name, &args[0], nil
	}
	return "", nil, &usageError{fmt.Errorf("unexpected argument %q after the arguments: quote the JSON, so that the shell takes it as one word", args[1])}
}

// isToolName reports whether arg can be a tool's name or path, and not JSON.
func isToolName(arg string) bool {
	return arg != "-" && naming.CheckNamespace(strings.TrimPrefix(arg, "/")) == nil
}

// readArguments returns body, or standard input where body is "-". It reads one byte more than a call can have, so that the check of a server finds
// arguments that are too large.
func readArguments(body string, stdin io.Reader, stderr io.Writer, limit int64) ([]byte, error) {
	if body != "-" {
		return []byte(body), nil
	}
	if file, ok := stdin.(*os.File); ok && isTerminal(file) {
		fmt.Fprintln(stderr, "Type the arguments as JSON, then Ctrl-D.")
	}
	text, err := io.ReadAll(io.LimitReader(stdin, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the arguments from standard input: %w", err)
	}
	return text, nil
}

// oneFolder accepts at most one argument, a folder or a script.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("unexpected argument %q: %s takes one folder or script", args[1], cmd.CommandPath())
	}
	if len(args) == 1 && args[0] == "" {
		return errors.New("the folder's name is empty: name a folder, or leave it out for this one")
	}
	return nil
}

// folderOf returns the folder among arguments that oneFolder has accepted.
func folderOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// noArguments refuses arguments that are not flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q: %s takes flags only", args[0], cmd.CommandPath())
}

// onePattern accepts a pattern of tools, or no argument.
func onePattern(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return errors.New("name one pattern, in quotes")
	}
	return nil
}

// takes returns a check that there are between least and most arguments, as the usage says.
func takes(count int, missing string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < count:
			return errors.New(missing + ", as in " + firstExample(cmd))
		case len(args) > count:
			return fmt.Errorf("unexpected argument %q: write it as in %s", args[count], firstExample(cmd))
		}
		return nil
	}
}
