package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/heap"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/wholefile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// built is what `toolsrv build` prints. Its JSON members are stable.
type built struct {
	File     string           `json:"file"`
	Language project.Language `json:"language"`
	Size     int              `json:"size"`
	Engine   string           `json:"engine,omitempty"` // of a script
	Tools    []builtTool      `json:"tools"`
	// Warnings are the examples that fail.
	Warnings []toolfile.Trial `json:"warnings,omitempty"`
	untried  bool             // examples of tools that need a grant were not tried
}

type builtTool struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Description string `json:"description"`
}

func newBuild() *cobra.Command {
	var output string
	var with []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "build [DIR | SCRIPT]",
		Short: "Build the tool in a folder, or a script, with its manifest inside",
		Long: `Build the tool in DIR (by default the current folder) or the tool SCRIPT: detect its language, run
the compiler with the right flags, embed the manifest, and check everything that a server would.
The manifest's examples are tried; a failing one gives a warning.

  Go      a package main
  TinyGo  the same, with the line //toolsrv:tinygo above its imports; the line may
          add the target wasm-unknown, and a larger stack: stack=4MiB
  Rust    a Cargo.toml; .cargo/config.toml may name a target other than
          wasm32-unknown-unknown
  Python, JavaScript, TypeScript
          a script: the one that package.json calls "main", or that has the folder's
          name, or main.py, index.js or index.ts, or the only one in the folder.
          It needs no compiler: the file holds an interpreter that toolsrv carries
A program in Go or Rust that knows nothing of toolsrv, but reads JSON from standard
input and writes JSON to standard output, needs its manifest, tool.json, beside it.

A build runs the project's code, such as Cargo's build scripts. A script runs only in the sandbox.`,
		Example: `  toolsrv build
  toolsrv build hello.py
  toolsrv build examples/text -o tools/text.wasm`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			heap.Brief() // saves a sixth of a script's build time
			b, err := buildTool(ctx, folderOf(args), with, output, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), b)
			}
			b.warn(cmd.ErrOrStderr())
			return b.print(cmd.OutOrStdout())
		},
		ValidArgsFunction: completeSource,
	}
	cmd.Flags().VarP((*fileFlag)(&output), "output", "o", "`file` to write (default NAME.wasm in DIR or beside SCRIPT, where NAME is the name of the folder or script)")
	addWithFlag(cmd, &with)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	completeFlag(cmd, "output", completeModules)
	return cmd
}

// buildTool builds the project at a path, embeds its manifest and writes the file. Messages name the file as the caller does.
func buildTool(ctx context.Context, path string, with []string, output string, stderr io.Writer) (*built, error) {
	p, err := project.Open(path)
	if err != nil {
		return nil, err
	}
	if err := p.SetWith(with); err != nil {
		return nil, &usageError{err}
	}
	if output == "" {
		output = p.Output(path)
	}
	if err := wholefile.Check(output); err != nil { // before the compiler runs
		return nil, err
	}
	if isTerminal(stderr) && p.Script == "" { // a first build may take half a minute
		fmt.Fprintf(stderr, "building %s with %s\n", oneLine(p.Name), p.Language)
	}
	module, err := p.Compile(ctx, stderr)
	if err != nil {
		return nil, err
	}
	b := &built{File: output, Language: p.Language}
	packed, manifest, err := b.pack(ctx, module, stderr)
	if isAuthors(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s compiles, but a server would refuse it: %w", path, err)
	}
	if err := wholefile.Write(output, packed); err != nil {
		return nil, fmt.Errorf("write the module: %w", err)
	}
	b.Size, b.Engine = len(packed), manifest.Engine
	for _, t := range manifest.Tools {
		tool := wasmtools.Tool{Namespace: manifest.Namespace, Name: t.Name}
		b.Tools = append(b.Tools, builtTool{t.Name, tool.Path(), t.Description})
	}
	return b, nil
}

// pack embeds the manifest that a module returns, and tries its examples: an example that fails is a warning.
func (b *built) pack(ctx context.Context, module []byte, stderr io.Writer) ([]byte, *manifest.Manifest, error) {
	var level slog.LevelVar // info
	tools, err := core.OpenBare(ctx, config.Default(), runtime.GOMAXPROCS(0), newAuthorLogger(stderr, &level))
	if err != nil {
		return nil, nil, err
	}
	defer tools.Close()
	done := showWaiting(stderr, fmt.Sprintf("asking %s (%s) for its manifest", filepath.Base(b.File), text.RoundSize(len(module))))
	packed, tried, err := toolfile.PackModule(ctx, tools.Engine, module, nil)
	done()
	if err != nil {
		return nil, nil, err
	}
	defer tried.Close()
	level.Set(logNothing)
	tried.TryExamples(ctx, func(t toolfile.Trial) {
		switch failed, ok := errors.AsType[*wasmtools.Error](t.Err); {
		case ok && failed.Code == wasmtools.CodeToolNotGranted: // tools have no grants during a build
			b.untried = true
		case t.Problem != "":
			b.Warnings = append(b.Warnings, t)
		}
	})
	return packed, tried.Manifest(), ctx.Err()
}

func (b *built) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %s, %s\n", oneLine(b.File), b.Language, text.RoundSize(b.Size)); err != nil {
		return err
	}
	for _, t := range b.Tools {
		if _, err := fmt.Fprintf(w, "  %s  %s\n", t.Path, oneLine(firstLine(t.Description))); err != nil {
			return err
		}
	}
	return nil
}

// warn prints which examples fail, and whether some were not tried.
func (b *built) warn(w io.Writer) {
	if b.untried {
		fmt.Fprintf(w, "the examples of tools that need a grant were not tried: toolsrv test %s --grant FILE does that\n", oneLine(b.File))
	}
	for _, t := range b.Warnings {
		fmt.Fprintf(w, "warning: %s, example %d: %s\n  arguments: %s\n", t.Path, t.Number, oneLine(t.Problem), shorten(string(t.Arguments)))
	}
}
