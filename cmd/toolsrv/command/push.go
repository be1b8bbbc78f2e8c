package command

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

func newPush() *cobra.Command {
	var f registryFlags
	var with []string
	var sign bool
	var key keyFlag
	cmd := &cobra.Command{
		Use:   "push FILE REFERENCE",
		Short: "Push a tool file to a registry of OCI",
		Long: `Push the tool file FILE to a registry as an artifact, in the form that wkg and wassette
push, too. REFERENCE is such as oci://ghcr.io/acme/csv:1.2.0. Of a script, what
'toolsrv build' makes of it is pushed.

Standard output has the reference with the artifact's digest. The same file has the same
digest each time. Credentials are those that docker and podman keep.

With --sign, the artifact is signed before it gets its tag: see 'toolsrv sign'.`,
		Example: `  toolsrv push csv.wasm oci://ghcr.io/acme/csv:1.2.0
  toolsrv push csv.wasm oci://localhost:5000/csv:dev
  toolsrv push csv.wasm oci://ghcr.io/acme/csv:1.2.0 --sign --key acme.key`,
		Args: takes(2, "FILE or REFERENCE is missing: name a tool file and where to push it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := artifactArgument(args[1])
			if err != nil {
				return err
			}
			if ref.Tag == "" {
				return &usageError{errors.New("REFERENCE needs a tag, such as :1.2.0: its digest follows from what is pushed")}
			}
			if sign != (key != "") {
				return &usageError{errors.New("--sign and --key belong together: name the key that signs")}
			}
			var signer *signature.Key
			if sign {
				if signer, err = key.read(); err != nil {
					return err
				}
			}
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			content, made, err := workbench.Read(ctx, args[0], with)
			if err != nil {
				return err
			}
			if made { // as build does
				content, _, err = packModule(ctx, content, nil, args[0], cmd.ErrOrStderr())
			}
			var report *toolfile.Report
			if err == nil {
				report, err = toolfile.Inspect(content)
			}
			if err == nil && report.Refused != "" {
				err = errors.New(report.Refused)
			}
			if isAuthors(err) {
				return err
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			registry, err := f.open(ref.Host)
			if err != nil {
				return err
			}
			defer registry.Close()
			done := showWaiting(cmd.ErrOrStderr(), fmt.Sprintf("pushing %s (%s)", args[0], text.RoundSize(len(content))))
			pushed, err := registry.PushSigned(ctx, ref, moduleName(args[0]), content, annotations(report, ref.Tag), signer)
			done()
			if err != nil {
				return err
			}
			tools := toolPaths(report)
			if f.asJSON {
				return printJSON(cmd.OutOrStdout(), newArtifact(ref, pushed, args[0], tools))
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", ref, pathList(tools))
			_, err = fmt.Fprintln(cmd.OutOrStdout(), oci.Scheme+ref.At(pushed.Manifest).String())
			return err
		},
		ValidArgsFunction: completeFiles,
	}
	f.add(cmd)
	addWithFlag(cmd, &with)
	cmd.Flags().BoolVar(&sign, "sign", false, "sign it with the key of --key")
	key.add(cmd)
	return cmd
}

// moduleName returns what the module of a file is called.
func moduleName(file string) string {
	base := filepath.Base(file)
	if abs, err := filepath.Abs(file); err == nil {
		base = filepath.Base(abs)
	}
	return strings.TrimSuffix(base, filepath.Ext(base)) + ".wasm"
}

// toolPaths returns the paths of the tools of a report, as far as its file says.
func toolPaths(r *toolfile.Report) (paths []string) {
	if r.Manifest == nil {
		return nil
	}
	for _, t := range r.Manifest.Tools {
		tool := wasmtools.Tool{Namespace: r.Manifest.Namespace, Name: t.Name}
		paths = append(paths, tool.Path())
	}
	return paths
}

// annotations are what registries show of an artifact. Its version is the one that its file says, or else that of the tag: it is signed with the
// artifact, so a source can ask for a minimum.
func annotations(r *toolfile.Report, tag string) map[string]string {
	a, version := map[string]string{}, ""
	if r.Manifest != nil {
		a["org.opencontainers.image.description"] = text.Clip(pathList(toolPaths(r)), 500)
		version = r.Manifest.Version
	}
	if version == "" && oci.CheckVersion(tag) == nil {
		version = tag
	}
	if version != "" {
		a["org.opencontainers.image.version"] = version
	}
	return a
}
