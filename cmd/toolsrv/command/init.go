package command

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/text"
)

// firstTool is the name of the tool that `toolsrv init` makes.
const firstTool = "greet"

func newInit() *cobra.Command {
	language := string(project.Python)
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Set up a folder to serve, with a configuration and a first tool",
		Long: `Prepare DIR (by default the current folder) for serving: write a toolsrv.toml with comments, the
folder tools, a first tool and a .gitignore. A tool in Python, JavaScript or TypeScript is one
script in tools. One in Go, TinyGo or Rust is a project beside it, from which toolsrv build makes
the file in tools.

DIR may contain files. None of them is changed, and the command lists what it kept. A folder with a
toolsrv.toml is set up already.`,
		Example: `  toolsrv init
  toolsrv init weather --lang typescript`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			s := project.Scaffold{Name: firstTool, Language: project.Language(language)}
			if err := s.Check(); err != nil {
				return &usageError{err}
			}
			dir := filepath.Clean(folderOf(args))
			made, err := project.Init(dir, s)
			if err != nil {
				return err
			}
			return sayInit(cmd.OutOrStdout(), dir, made, s)
		},
		ValidArgsFunction: completeFolder,
	}
	cmd.Flags().StringVar(&language, "lang", language, "`language` of the first tool: go, tinygo, rust, python, javascript or typescript")
	completeFlag(cmd, "lang", cobra.FixedCompletions(languageNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// sayInit prints what was made in a folder, what was kept, and what to type next.
func sayInit(w io.Writer, dir string, f *project.Folder, s project.Scaffold) error {
	var b strings.Builder
	names := make([]string, len(f.Made))
	for i, name := range f.Made {
		names[i] = oneLine(filepath.Join(dir, filepath.FromSlash(name)))
	}
	fmt.Fprintf(&b, "Made %s.\n", andList(names))
	for _, kept := range f.Kept {
		b.WriteString(kept + "\n")
	}
	if tools, _ := toolFiles(dir); len(tools) > 0 {
		fmt.Fprintf(&b, "Only files in %s are served: move %s there to serve it, too.\n", oneLine(filepath.Join(dir, toolsFolder)), few(tools))
	}
	b.WriteString("\nNext:\n\n")
	own := ownName()
	if f.First != "" && !strings.HasPrefix(f.First, toolsFolder+"/") {
		fmt.Fprintf(&b, "  %s build %s -o %s\n", own, text.ShellQuote(filepath.Join(dir, f.First)), text.ShellQuote(filepath.Join(dir, toolsFolder, f.First+".wasm")))
	}
	up := own + " up"
	if dir != "." {
		up += " " + text.ShellQuote(dir)
	}
	fmt.Fprintf(&b, "  %s\n", up)
	if strings.HasPrefix(f.First, toolsFolder+"/") {
		fmt.Fprintf(&b, "\nand, in another terminal:\n\n  curl -s %s%s -H 'Content-Type: application/json' -d '{\"name\": \"Ada\"}'\n", "localhost:8000", s.Path())
	}
	_, err := io.WriteString(w, text.Escape(b.String()))
	return err
}

// andList names things in a sentence.
func andList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
