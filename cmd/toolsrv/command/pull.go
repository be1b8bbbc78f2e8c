package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

func newPull() *cobra.Command {
	var f registryFlags
	var s signerFlags
	var mirrors mirrorFlag
	var output, source string
	cmd := &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Pull a tool file from an OCI registry",
		Long: `Pull the module of an artifact from a registry, and write it to a file. REFERENCE looks like
oci://ghcr.io/acme/csv:1.2.0, or has a digest instead of the tag. It also pulls what wkg, wassette
and hyper-mcp have pushed.

The file is written only once the digests of the artifact and of its module have been verified; it
is replaced as a whole or not at all. The command prints the reference with the artifact's digest,
which always pulls the same file.

With --key, or with --issuer, --subject and --root, nothing is written unless the artifact has that
signature: see 'toolsrv verify'.

With --mirror, the artifact comes from the mirror if it is there. Tags are always looked up at the
registry in REFERENCE; if REFERENCE has a digest, that registry may be down.

With --source, it pulls the source that was pushed with a script, instead of the module. That the
module was made from this source is the word of whoever pushed it; a signature of the artifact
covers the source, too.`,
		Example: `  toolsrv pull oci://ghcr.io/acme/csv:1.2.0
  toolsrv pull oci://ghcr.io/acme/csv:1.2.0 -o tools/csv.wasm
  toolsrv pull oci://ghcr.io/acme/csv:1.2.0 --key acme.pub
  toolsrv pull oci://ghcr.io/acme/csv:1.2.0 --source csv`,
		Args: takes(1, "REFERENCE is missing: name what to pull"),
		RunE: func(cmd *cobra.Command, args []string) error {
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			ref, err := artifactArgument(args[0])
			if err != nil {
				return err
			}
			if err := s.require(&f.options); err != nil {
				return err
			}
			if source != "" {
				if output != "" {
					return &usageError{errors.New("--source and --output exclude each other: pull the source and the module one after the other")}
				}
				return f.pullSource(cmd, ref, mirrors, source)
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
			err = f.askMirrored(cmd, ref, mirrors, "pulling "+ref.String(), func(ctx context.Context, registry *oci.Registry, ref oci.Reference) (err error) {
				module.Reset()
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
			if err == nil {
				err = unserved(report)
			}
			switch {
			case err != nil:
				fmt.Fprintf(stderr, "%s: no server will serve it: %s\n", oneLine(file), text.Escape(err.Error()))
				report = &toolfile.Report{}
			case !f.asJSON:
				fmt.Fprintf(stderr, "%s: %s\n", oneLine(file), text.Escape(toldTools(report)))
			}
			if f.asJSON {
				return printJSON(stdout, newArtifact(ref, pulled, file, toolPaths(report.Manifest)))
			}
			_, err = fmt.Fprintln(stdout, oci.Scheme+ref.At(pulled.Manifest).String())
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd)
	s.add(cmd)
	s.addMinimum(cmd, &f.options.Minimum)
	mirrors.add(cmd)
	cmd.Flags().Var((*fileFlag)(&source), "source", "pull the source of a script into this `folder`, which must be new or empty")
	completeFlag(cmd, "source", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	cmd.Flags().VarP((*fileFlag)(&output), "output", "o", "`file` to write (default the last part of the name, with .wasm)")
	completeFlag(cmd, "output", completeModules)
	return cmd
}

// A pulledSource is what `pull --source --json` prints. Its members are stable.
type pulledSource struct {
	Reference string   `json:"reference"`
	Digest    string   `json:"digest"`
	Source    string   `json:"source"`
	Folder    string   `json:"folder"`
	Files     []string `json:"files"`
}

// pullSource pulls the source of an artifact into a folder.
func (f *registryFlags) pullSource(cmd *cobra.Command, ref oci.Reference, mirrors mirrorFlag, folder string) error {
	if err := checkNewFolder(folder); err != nil { // before anything is pulled
		return err
	}
	var files []oci.SourceFile
	var a *oci.Artifact
	err := f.askMirrored(cmd, ref, mirrors, "pulling the source of "+ref.String(), func(ctx context.Context, registry *oci.Registry, ref oci.Reference) (err error) {
		files, a, err = registry.Source(ctx, ref)
		return err
	})
	if err == nil {
		err = writeFolder(folder, files)
	}
	if err != nil {
		return err
	}
	p := pulledSource{Reference: oci.Scheme + ref.At(a.Manifest).String(), Digest: a.Manifest, Source: a.Source(), Folder: folder}
	for _, file := range files {
		p.Files = append(p.Files, file.Name)
	}
	if f.asJSON {
		return printJSON(cmd.OutOrStdout(), p)
	}
	for _, name := range p.Files {
		fmt.Fprintln(cmd.ErrOrStderr(), text.Escape(filepath.Join(folder, filepath.FromSlash(name))))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), p.Reference)
	return err
}

// checkNewFolder returns an error unless a folder is empty, or could be made because its parent exists.
func checkNewFolder(name string) error {
	names, err := os.ReadDir(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wholefile.Check(name) // checks that its parent exists
	case err != nil:
		return fmt.Errorf("write the source: %w", err)
	case len(names) > 0:
		return fmt.Errorf("write the source: the folder %s is not empty: name one that is new", name)
	}
	return nil
}

// writeFolder writes files into a folder. None of them can lead out of it.
func writeFolder(name string, files []oci.SourceFile) error {
	err := os.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	var in *os.Root
	if err == nil {
		in, err = os.OpenRoot(name)
	}
	if err == nil {
		defer in.Close()
	}
	for _, f := range files {
		to := filepath.FromSlash(f.Name)
		if err == nil {
			err = in.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = in.WriteFile(to, f.Content, 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("write the source: %w", err)
	}
	return nil
}
