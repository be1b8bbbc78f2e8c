package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/author/project"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/wholefile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// built is what `toolsrv build` prints. Its JSON members are stable.
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
		Long: `Build the tool whose source is in DIR, or in the current folder: find out its language,
run the compiler with the right flags, embed the manifest, and check what a server would.

  Go      a package main
  TinyGo  the same, with the line //toolsrv:tinygo above its imports; the line may
          add a target other than wasip1, and the word goroutines
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
	cmd.Flags().VarP((*fileFlag)(&output), "output", "o", "`file` to write (default DIR/NAME.wasm, where NAME is that of the folder)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	completeFlag(cmd, "output", completeModules)
	return cmd
}

// buildTool builds the project in dir, embeds its manifest and writes the file. Messages name the file as the caller does.
func buildTool(ctx context.Context, dir, output string, stderr io.Writer) (*built, error) {
	p, err := project.Open(dir)
	if err != nil {
		return nil, err
	}
	if output == "" {
		output = filepath.Join(dir, p.Name+".wasm")
	}
	if err := wholefile.Check(output); err != nil { // before the compiler runs
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
	if err := wholefile.Write(output, packed); err != nil {
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
