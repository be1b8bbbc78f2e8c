package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/author/project"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// built is what `toolsrv build` tells; the JSON members are stable.
type built struct {
	File     string           `json:"file"`
	Language project.Language `json:"language"`
	Size     int              `json:"size"`
	Tools    []builtTool      `json:"tools"`
}

type builtTool struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Description string `json:"description"`
}

func newBuild() *cobra.Command {
	var output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Build the tool in a folder, with its manifest inside",
		Long: `Build the tool whose source is in DIR, or here: find out its language, run the
compiler with the right flags, embed the manifest, and check what a server would.

  Go      a package main
  TinyGo  the same, with the line //toolsrv:tinygo above its imports; behind it may
          stand a target other than wasip1, and the word goroutines
  Rust    a Cargo.toml; .cargo/config.toml may name a target other than
          wasm32-unknown-unknown
A program in Go or Rust that knows nothing of toolsrv, but reads JSON from standard
input and writes JSON to standard output, needs its manifest beside it: tool.json.

A build runs code of the project, such as Cargo's build scripts.`,
		Example: `  toolsrv build
  toolsrv build examples/text -o tools/text.wasm`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			b, err := buildTool(ctx, folderOf(args), output, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), b)
			}
			return b.print(cmd.OutOrStdout())
		},
		ValidArgsFunction: completeFolder,
	}
	cmd.Flags().VarP((*fileFlag)(&output), "output", "o", "`file` to make (default DIR/NAME.wasm, where NAME is that of the folder)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	completeFlag(cmd, "output", completeModules)
	return cmd
}

// buildTool builds the project in dir, embeds its manifest and writes the file, which is named as the caller will see it.
func buildTool(ctx context.Context, dir, output string, stderr io.Writer) (*built, error) {
	p, err := project.Open(dir)
	if err != nil {
		return nil, err
	}
	if output == "" {
		output = filepath.Join(dir, p.Name+".wasm")
	}
	if err := checkOutput(output); err != nil { // before the compiler runs
		return nil, err
	}
	if isTerminal(stderr) { // a first build may take half a minute
		fmt.Fprintf(stderr, "building %s with %s\n", p.Name, p.Language)
	}
	module, err := p.Compile(ctx, stderr)
	if err != nil {
		return nil, err
	}
	packed, manifest, err := packModule(ctx, module, nil, filepath.Base(output), stderr)
	if err != nil {
		return nil, fmt.Errorf("%s compiles, but a server would refuse it: %w", dir, err)
	}
	if err := replaceFile(output, packed); err != nil {
		return nil, fmt.Errorf("write the module: %w", err)
	}
	b := &built{File: output, Language: p.Language, Size: len(packed)}
	for _, t := range manifest.Tools {
		tool := wasmtools.Tool{Namespace: manifest.Namespace, Name: t.Name}
		b.Tools = append(b.Tools, builtTool{t.Name, tool.Path(), t.Description})
	}
	return b, nil
}

func (b *built) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %s, %s\n", b.File, b.Language, text.RoundSize(b.Size)); err != nil {
		return err
	}
	for _, t := range b.Tools {
		if _, err := fmt.Fprintf(w, "  %s  %s\n", t.Path, oneLine(firstLine(t.Description))); err != nil {
			return err
		}
	}
	return nil
}

// oneFolder takes at most one argument, a folder.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("unexpected argument %q: %s takes one folder", args[1], cmd.CommandPath())
	}
	if len(args) == 1 && args[0] == "" {
		return errors.New("the folder's name is empty: name a folder, or leave it out for this one")
	}
	return nil
}

// folderOf returns the folder that oneFolder has let through.
func folderOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// checkOutput reports why a file can't be made or replaced, or nil.
func checkOutput(name string) error {
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder: name a file, such as %s", name, filepath.Join(name, "tool.wasm"))
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: name another", name)
	}
	folder := filepath.Dir(name)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it first", folder)
	}
	return nil
}

// replaceFile writes a file whole or not at all: a server that serves it never sees a half. A file that was there keeps its
// mode, and a symbolic link to one stays a link.
func replaceFile(name string, content []byte) error {
	if err := checkOutput(name); err != nil {
		return err
	}
	target := name
	mode := fs.FileMode(0)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	// A name that nobody can foresee, and that a server skips.
	temp := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+"."+rand.Text()[:8]+".tmp")
	err := writeNew(temp, content, mode)
	if err == nil {
		err = os.Rename(temp, target)
	}
	if err == nil {
		return nil
	}
	_ = os.Remove(temp) // it may not be there
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the name of temp, which says nothing to people
	}
	return fmt.Errorf("%s: %w", name, err)
}

// writeNew writes a file that is not there yet, with a mode, or the usual one where that is 0.
func writeNew(name string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil && mode != 0 {
		err = file.Chmod(mode)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
