package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/wholefile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// pack holds the flags of `toolsrv pack`.
type pack struct {
	manifest string
	output   string
}

func newPack() *cobra.Command {
	var p pack
	cmd := &cobra.Command{
		Use:   "pack FILE",
		Short: "Embed a tool's manifest into its file",
		Long: `Embed a manifest into FILE, so that a server lists its tools without running it. The
manifest comes from --manifest, which makes any WASI program a tool, or else from the
module itself (its export toolsrv_describe is run once, in the sandbox).

The manifest, its schemas and the module are checked first, so that a server accepts the result.
FILE is replaced as a whole or not at all.`,
		Example: `  toolsrv pack shout.wasm --manifest tool.json
  toolsrv pack greet.wasm -o tools/greet.wasm`,
		Args:              fileAnd(0, ""),
		RunE:              p.run,
		ValidArgsFunction: completeModules,
	}
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&p.manifest), "manifest", "`file` with the manifest as JSON; - reads standard input")
	flags.VarP((*fileFlag)(&p.output), "output", "o", "`file` to write; - is standard output (default FILE)")
	completeFlag(cmd, "manifest", cobra.FixedCompletions([]cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "output", completeModules)
	return cmd
}

func (p *pack) run(cmd *cobra.Command, args []string) error {
	stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	output := p.output
	switch {
	case output == "":
		output = args[0]
	case output == "-" && isTerminal(stdout):
		return &usageError{errors.New("-o - would write a binary to the terminal: redirect standard output, or name a file")}
	}
	if p.output != "" && output != "-" {
		if err := wholefile.Check(output); err != nil { // checked before anything runs
			return fmt.Errorf("write the module: %w", err)
		}
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	content, err := toolfile.ReadFile(args[0])
	if err != nil {
		return err
	}
	manifest, err := p.readManifest(cmd.InOrStdin())
	if err != nil {
		return err
	}
	packed, m, err := packModule(ctx, content, manifest, args[0], stderr)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if output == "-" {
		_, err = stdout.Write(packed)
		return err
	}
	if err := wholefile.Write(output, packed); err != nil {
		return fmt.Errorf("write the module: %w", err)
	}
	fmt.Fprintf(stderr, "%s: %s\n", oneLine(output), pathList(toolPaths(m)))
	return nil
}

// readManifest returns the manifest of --manifest, or nil. It reads more than the largest manifest, so that the check finds one that is too large.
func (p *pack) readManifest(stdin io.Reader) ([]byte, error) {
	if p.manifest == "" {
		return nil, nil
	}
	from := stdin
	if p.manifest != "-" {
		file, err := os.Open(p.manifest)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, manifest.Max+4)) // 3 more bytes for a byte order mark
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// packModule embeds a manifest, or the one that the module returns. If the module panics, its log lines say why.
func packModule(ctx context.Context, content, manifest []byte, file string, stderr io.Writer) ([]byte, *manifest.Manifest, error) {
	tools, err := core.OpenBare(ctx, config.Default(), runtime.GOMAXPROCS(0), newLogger(stderr, slog.LevelInfo))
	if err != nil {
		return nil, nil, err
	}
	defer tools.Close()
	done := showWaiting(stderr, fmt.Sprintf("asking %s (%s) for its manifest", file, text.RoundSize(len(content))))
	defer done()
	return toolfile.Pack(ctx, tools.Engine, content, manifest)
}

// toolPaths returns the paths of the tools of a manifest, which may be nil.
func toolPaths(m *manifest.Manifest) (paths []string) {
	if m == nil {
		return nil
	}
	for _, t := range m.Tools {
		tool := wasmtools.Tool{Namespace: m.Namespace, Name: t.Name}
		paths = append(paths, tool.Path())
	}
	return paths
}

// pathList returns a text with the number of tools and the first paths.
func pathList(paths []string) string {
	const most = 10
	text := fmt.Sprintf("%d tools: ", len(paths))
	if len(paths) == 1 {
		text = "1 tool: "
	}
	if len(paths) > most {
		return text + strings.Join(paths[:most], ", ") + ", ..."
	}
	return text + strings.Join(paths, ", ")
}
