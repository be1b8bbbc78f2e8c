package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

func newPush() *cobra.Command {
	var f registryFlags
	var with []string
	var sign, source bool
	var key keyFlag
	cmd := &cobra.Command{
		Use:   "push FILE... REFERENCE",
		Short: "Push tool files to an OCI registry",
		Long: `Push the tool file FILE to a registry as an artifact, in the same form as wkg and wassette.
REFERENCE looks like oci://ghcr.io/acme/csv:1.2.0. For a script, it pushes what 'toolsrv build'
makes of it, together with the source: the script and everything that it imports from its folder.
'toolsrv pull --source' gets that back.

Several FILEs become one artifact each below REFERENCE, under their names: with
oci://ghcr.io/acme:1.2.0, csv.wasm and pdf.wasm go to oci://ghcr.io/acme/csv:1.2.0 and
oci://ghcr.io/acme/pdf:1.2.0. All are checked before the first is pushed.

The command prints the references with the artifacts' digests. The same file always has the same
digest. It uses the credentials of docker and podman.

With --sign, an artifact is signed before it gets its tag: see 'toolsrv sign'.`,
		Example: `  toolsrv push csv.wasm oci://ghcr.io/acme/csv:1.2.0
  toolsrv push csv.wasm oci://localhost:5000/csv:dev
  toolsrv push csv.wasm oci://ghcr.io/acme/csv:1.2.0 --sign --key acme.key
  toolsrv push tools/*.wasm oci://ghcr.io/acme/tools:1.2.0`,
		Args: func(cmd *cobra.Command, args []string) error {
			return takes(max(2, len(args)), "FILE or REFERENCE is missing: name a tool file and where to push it")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			files := args[:len(args)-1]
			ref, err := artifactArgument(args[len(files)])
			if err != nil {
				return err
			}
			if ref.Tag == "" {
				return &usageError{errors.New("REFERENCE needs a tag, such as :1.2.0: the digest follows from the content")}
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
			var all []*pushing
			for _, file := range files {
				one, err := readPushed(ctx, file, with, source, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				if one.ref = ref; len(files) > 1 {
					if one.ref, err = below(ref, file); err != nil {
						return err
					}
				}
				if slices.ContainsFunc(all, func(other *pushing) bool { return other.ref == one.ref }) {
					return &usageError{fmt.Errorf("two files would be pushed to %s: push one of them separately", one.ref)}
				}
				all = append(all, one)
			}
			registry, err := f.open(ref.Host)
			if err != nil {
				return err
			}
			defer registry.Close()
			for _, one := range all {
				if err := f.push(ctx, cmd, registry, one, signer); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: completeFiles,
	}
	f.add(cmd)
	addWithFlag(cmd, &with)
	cmd.Flags().BoolVar(&source, "source", true, "also push the source of a script")
	cmd.Flags().BoolVar(&sign, "sign", false, "sign it with the key of --key")
	key.add(cmd)
	return cmd
}

// A pushing is a file that will be pushed.
type pushing struct {
	ref     oci.Reference
	file    string
	content []byte
	report  *toolfile.Report
	source  []oci.SourceFile
}

// readPushed reads a file that a server could serve, and the source of a script if that is wanted.
func readPushed(ctx context.Context, file string, with []string, source bool, stderr io.Writer) (*pushing, error) {
	content, made, err := workbench.Read(ctx, file, with)
	if err != nil {
		return nil, err
	}
	one := &pushing{file: file}
	if made != nil && source {
		if one.source, err = readSource(made); err != nil {
			return nil, fmt.Errorf("%s: read its source: %w", file, err)
		}
	}
	if made != nil { // as build does
		content, _, err = packModule(ctx, content, nil, file, stderr)
	}
	if err == nil {
		one.report, err = toolfile.Inspect(content)
	}
	if err == nil {
		err = unserved(one.report)
	}
	if err != nil && !isAuthors(err) {
		err = fmt.Errorf("%s: %w", file, err)
	}
	one.content = content
	return one, err
}

// readSource returns the files that a script was made from, leaving out files outside its folder, which belong to packages.
func readSource(made *workbench.Made) (files []oci.SourceFile, err error) {
	folder, err := filepath.Abs(filepath.Dir(made.Script))
	if err != nil {
		return nil, err
	}
	left := int64(oci.MaxSource)
	for _, input := range made.Inputs {
		name, err := filepath.Rel(folder, input)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		info, err := os.Stat(input)
		if err != nil || !info.Mode().IsRegular() {
			continue // the file was looked for, but does not exist
		}
		if left -= info.Size(); left < 0 {
			return nil, fmt.Errorf("it has more than %s: --source=false pushes only the module", text.RoundSize(oci.MaxSource))
		}
		content, err := os.ReadFile(input)
		if err != nil {
			return nil, err
		}
		files = append(files, oci.SourceFile{Name: filepath.ToSlash(name), Content: content})
	}
	return files, nil
}

// below returns the reference to which one of several files is pushed.
func below(ref oci.Reference, file string) (oci.Reference, error) {
	name := strings.TrimSuffix(moduleName(file), ".wasm")
	one, err := oci.ParseReference(ref.Host + "/" + ref.Repository + "/" + name + ":" + ref.Tag)
	if err != nil {
		return one, &usageError{fmt.Errorf("%s: %q can't be part of a reference: push it separately, to a name in lower case", file, name)}
	}
	return one, nil
}

// push pushes one file, signs it unless signer is nil, and prints its reference.
func (f *registryFlags) push(ctx context.Context, cmd *cobra.Command, registry *oci.Registry, one *pushing, signer *signature.Key) error {
	done := showWaiting(cmd.ErrOrStderr(), fmt.Sprintf("pushing %s (%s)", one.file, text.RoundSize(len(one.content))))
	pushed, err := registry.PushWith(ctx, one.ref, moduleName(one.file), one.content, annotations(one.report, one.ref.Tag), oci.With{Key: signer, Source: one.source})
	done()
	if err != nil {
		return err
	}
	tools := toolPaths(one.report.Manifest)
	if f.asJSON {
		return printJSON(cmd.OutOrStdout(), newArtifact(one.ref, pushed, one.file, tools))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", one.ref, toldTools(one.report))
	if m := one.report.Manifest; m != nil && m.Version != "" && !strings.HasPrefix(m.Version+".", strings.TrimPrefix(one.ref.Tag, "v")+".") && oci.CheckVersion(one.ref.Tag) == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: the tag says version %s, but the file says %s, which a source's minimum is compared with\n", one.ref, one.ref.Tag, text.Escape(m.Version))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), oci.Scheme+one.ref.At(pushed.Manifest).String())
	return err
}

// moduleName returns the name of a file's module.
func moduleName(file string) string {
	base := filepath.Base(file)
	if abs, err := filepath.Abs(file); err == nil {
		base = filepath.Base(abs)
	}
	return strings.TrimSuffix(base, filepath.Ext(base)) + ".wasm"
}

// unserved returns why a server would serve no tool of a file, if that can be known before it runs, or "".
func unserved(r *toolfile.Report) error {
	switch {
	case r.Refused != "":
		return errors.New(r.Refused)
	case r.ManifestError != "":
		return fmt.Errorf("its manifest: %s", r.ManifestError)
	case r.Manifest == nil && r.Left.Exports == 0 && !slices.ContainsFunc(r.Exports, func(e toolfile.Symbol) bool { return e.Name == "toolsrv_describe" }):
		return errors.New("it has no manifest: embed one with `toolsrv pack`")
	}
	return nil
}

// toldTools describes the tools of the file that a report is about.
func toldTools(r *toolfile.Report) string {
	if r.Manifest == nil {
		return "its tools are known only once it runs"
	}
	return pathList(toolPaths(r.Manifest))
}

// annotations are what registries show about an artifact. The version is the one in the file, or else the tag. The version is signed with the
// artifact, so a source can require a minimum version.
func annotations(r *toolfile.Report, tag string) map[string]string {
	a, version := map[string]string{}, ""
	if r.Manifest != nil {
		a["org.opencontainers.image.description"] = text.Clip(pathList(toolPaths(r.Manifest)), 500)
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
