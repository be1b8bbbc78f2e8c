package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

func newPull() *cobra.Command {
	var f registryFlags
	var output string
	cmd := &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Pull a tool file from a registry of OCI",
		Long: `Pull the module of an artifact from a registry, and write it to a file. REFERENCE is such
as oci://ghcr.io/acme/csv:1.2.0, or has a digest in place of the tag. What wkg, wassette
and hyper-mcp push is pulled, too.

The file is written only once the digests of the artifact and of its module have been
verified; it is replaced whole or not at all. Standard output has the reference with the
artifact's digest, which pulls the same file again.`,
		Example: `  toolsrv pull oci://ghcr.io/acme/csv:1.2.0
  toolsrv pull oci://ghcr.io/acme/csv:1.2.0 -o tools/csv.wasm`,
		Args: takes(1, "REFERENCE is missing: name what to pull"),
		RunE: func(cmd *cobra.Command, args []string) error {
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			ref, err := artifactArgument(args[0])
			if err != nil {
				return err
			}
			file := output
			if file == "" {
				file = path.Base(ref.Repository) + ".wasm"
			}
			if err := wholefile.Check(file); err != nil { // before anything is pulled
				return fmt.Errorf("write the module: %w", err)
			}
			var module bytes.Buffer
			var pulled *oci.Artifact
			err = f.ask(cmd, ref.Host, "pulling "+ref.String(), func(ctx context.Context, registry *oci.Registry) (err error) {
				pulled, err = registry.Pull(ctx, ref, &module)
				return err
			})
			if err != nil {
				return err
			}
			if err := wholefile.Write(file, module.Bytes()); err != nil {
				return fmt.Errorf("write the module: %w", err)
			}
			report, err := toolfile.Inspect(module.Bytes())
			if err == nil && report.Refused != "" {
				err = errors.New(report.Refused)
			}
			if err != nil {
				fmt.Fprintf(stderr, "%s: no server serves it: %s\n", file, text.Escape(err.Error()))
				report = &toolfile.Report{}
			}
			tools := toolPaths(report)
			if f.asJSON {
				return printJSON(stdout, newArtifact(ref, pulled, file, tools))
			}
			fmt.Fprintf(stderr, "%s: %s\n", file, text.Escape(pathList(tools)))
			_, err = fmt.Fprintln(stdout, oci.Scheme+ref.At(pulled.Manifest).String())
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd)
	cmd.Flags().VarP((*fileFlag)(&output), "output", "o", "`file` to write (default the last part of the name, with .wasm)")
	completeFlag(cmd, "output", completeModules)
	return cmd
}
