package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/text"
)

func newNew() *cobra.Command {
	var s project.Scaffold
	var language string
	cmd := &cobra.Command{
		Use:   "new NAME --lang LANGUAGE",
		Short: "Make a folder with a new tool, ready to build",
		Long: `Make the folder NAME with a new tool: its source, a test and a README. Edit the source:
the JSON Schema, the binary interface and the compiler's flags follow from it. The
languages are go, tinygo, rust, python, javascript and typescript.

NAME is the path under which the tool is served: invoice/total is the tool total in the namespace
invoice. If NAME begins with "." or is absolute, it is only a file path, and the tool has the
folder's name; "." is the current folder. --namespace sets the namespace either way.`,
		Example: `  toolsrv new greet --lang go
  toolsrv new invoice/total --lang python
  toolsrv new ../greet --lang go --namespace texts`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || args[0] == "":
				return errors.New("the name of the tool is missing: toolsrv new NAME --lang go")
			case len(args) > 1:
				return fmt.Errorf("unexpected argument %q: make one tool at a time", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if language == "" {
				return &usageError{errors.New("--lang is missing: choose go, tinygo, rust, python, javascript or typescript")}
			}
			dir := filepath.Clean(args[0])
			if base := filepath.Base(dir); base == "." || base == ".." { // use the name of the existing folder
				var err error
				if dir, err = filepath.Abs(dir); err != nil {
					return err
				}
			}
			s.Name, s.Language = filepath.Base(dir), project.Language(language)
			folders := "" // all parts of the name but the last, if they are the namespace
			if !cmd.Flags().Changed("namespace") {
				folders = namespaceOf(args[0])
				s.Namespace = folders
			}
			s.Published = s.SDK == "" && cmd.Flags().Changed("sdk")
			if err := s.Check(); err != nil {
				plain := s
				plain.Namespace = ""
				if folders != "" && plain.Check() == nil {
					err = fmt.Errorf("%w (for folders that are not a namespace, write %s)", err, text.ShellQuote("."+string(filepath.Separator)+dir))
				}
				return &usageError{err}
			}
			if err := project.New(dir, s); err != nil {
				return err
			}
			return sayNew(cmd.OutOrStdout(), dir, s)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&language, "lang", "", "`language` of the tool, such as go or python")
	flags.StringVar(&s.Namespace, "namespace", "", "the `path` before the tool's name, such as texts (default the one in NAME)")
	flags.StringVar(&s.SDK, "sdk", "", "`folder` with the SDKs to use instead of those that toolsrv carries: sdk in toolsrv's source; --sdk= uses the published ones")
	completeFlag(cmd, "lang", cobra.FixedCompletions(languageNames(), cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "namespace", cobra.NoFileCompletions)
	completeFlag(cmd, "sdk", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	return cmd
}

// namespaceOf returns the namespace in a tool's name, such as "invoice" in "invoice/total". A name that can only be a file system path has none.
func namespaceOf(name string) string {
	if !filepath.IsLocal(name) || strings.HasPrefix(name, ".") {
		return ""
	}
	if folders := filepath.Dir(filepath.Clean(name)); folders != "." {
		return filepath.ToSlash(folders)
	}
	return ""
}

// ownName returns a name with which this program can be started from any folder.
func ownName() string {
	const name = "toolsrv"
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	path, err := os.Executable()
	if err != nil {
		return name
	}
	return text.ShellQuote(path)
}

// sayNew prints what to do with a new project.
func sayNew(w io.Writer, dir string, s project.Scaffold) error {
	var test string
	switch s.Language {
	case project.Rust:
		test = "cargo test"
	case project.Python:
		test = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]'\n  .venv/bin/pytest"
	case project.JavaScript, project.TypeScript:
		test = "npm install && npm test"
	default:
		test = "go test ."
		if s.Published {
			test = "go mod tidy     # gets the SDK\n  " + test
		}
	}
	own := ownName()
	_, err := fmt.Fprintf(w, `Made %s. Next:

  cd %s
  %s
  %s dev .

and, in another terminal:

  curl -s localhost:8000%s -H 'Content-Type: application/json' -d '{"name": "Ada"}'

To make the file for a server's tools directory: %s build .
`, oneLine(dir), text.Escape(text.ShellQuote(dir)), test, text.Escape(own), s.Path(), text.Escape(own))
	return err
}

func languageNames() (names []cobra.Completion) {
	for _, l := range project.Languages() {
		names = append(names, string(l))
	}
	return names
}
