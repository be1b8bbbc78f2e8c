package command

import (
	"bytes"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/text"
)

// registryFlags are the flags of the commands that use a registry.
type registryFlags struct {
	options oci.Options
	asJSON  bool
}

func (f *registryFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.asJSON, "json", false, "print a JSON object")
	flags.BoolVar(&f.options.PlainHTTP, "plain-http", false, "use HTTP, as for a registry on loopback anyway")
	flags.Var((*fileFlag)(&f.options.CA), "ca", "PEM `file` with certificate authorities to trust besides the system's")
	flags.Var((*fileFlag)(&f.options.Credentials), "credentials", "`file` in the format of docker's config.json (default: docker's and podman's own)")
	completeFlag(cmd, "ca", cobra.FixedCompletions([]cobra.Completion{"pem", "crt"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "credentials", cobra.FixedCompletions([]cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt))
}

// open opens a registry with the settings of the flags. The caller closes it.
func (f *registryFlags) open(host string) (*oci.Registry, error) { return oci.Open(host, f.reach()) }

// reach returns how a registry is reached.
func (f *registryFlags) reach() oci.Options {
	o := f.options
	o.MaxModule, o.Agent = sandbox.MaxModule, "toolsrv"
	if b, err := readBuild(); err == nil {
		o.Agent = "toolsrv/" + b.Version
	}
	return o
}

// ask opens a registry and calls do with it, until the user interrupts. Meanwhile it shows what it waits for.
func (f *registryFlags) ask(cmd *cobra.Command, host, waiting string, do func(ctx context.Context, registry *oci.Registry) error) error {
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	registry, err := f.open(host)
	if err != nil {
		return err
	}
	defer registry.Close()
	done := showWaiting(cmd.ErrOrStderr(), waiting)
	defer done()
	return do(ctx, registry)
}

// askMirrored is ask for an artifact that mirrors may have, too.
func (f *registryFlags) askMirrored(cmd *cobra.Command, ref oci.Reference, mirrors mirrorFlag, waiting string, do func(ctx context.Context, registry *oci.Registry, ref oci.Reference) error) error {
	if len(mirrors) == 0 {
		return f.ask(cmd, ref.Host, waiting, func(ctx context.Context, registry *oci.Registry) error { return do(ctx, registry, ref) })
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	registries, err := oci.OpenPeers(oci.Reference{Host: ref.Host, Repository: ref.Repository}, mirrors, f.reach(), 0)
	if err != nil {
		return err
	}
	defer registries.Close()
	done := showWaiting(cmd.ErrOrStderr(), waiting)
	defer done()
	digest, err := registries.Origin().Resolve(ctx, ref) // this only resolves a tag
	if err != nil {
		return err
	}
	var told bytes.Buffer
	err = askEach(ctx, &told, registries, digest, do)
	done()
	_, _ = told.WriteTo(cmd.ErrOrStderr())
	return err
}

// mirrorFlag is the flag --mirror, which can be given several times.
type mirrorFlag []oci.Reference

func (f *mirrorFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(f, "mirror", "mirror `repository`, asked first for content with a digest; can be given several times")
	completeFlag(cmd, "mirror", cobra.NoFileCompletions)
}

func (f *mirrorFlag) Set(name string) error {
	ref, err := oci.ParseReference(name)
	switch {
	case err != nil:
		return errors.New("it does not name a repository: write one such as mirror.example.com/acme/csv, in lower case")
	case ref.Tag != "" || ref.Digest != "":
		return errors.New("it has a tag or a digest: name only the repository")
	}
	*f = append(*f, ref)
	return nil
}

func (f *mirrorFlag) String() string { return "" }

func (f *mirrorFlag) Type() string { return "string" }

// artifactArgument parses a reference that a user has typed.
func artifactArgument(typed string) (oci.Reference, error) {
	ref, err := oci.ParseReference(typed)
	if err != nil {
		return ref, &usageError{err}
	}
	return ref, nil
}

// artifact is what `push --json` and `pull --json` print. Its members are stable.
type artifact struct {
	// Reference has the digest of the artifact, so that it always leads to the same artifact.
	Reference string `json:"reference"`
	Tag       string `json:"tag,omitempty"`
	Digest    string `json:"digest"`
	// Module is the digest of the .wasm file, and Size its number of bytes.
	Module string `json:"module"`
	Size   int64  `json:"size"`
	// Source is the digest of the source that a script's module was made from.
	Source string   `json:"source,omitempty"`
	File   string   `json:"file"`
	Tools  []string `json:"tools"`
}

func newArtifact(ref oci.Reference, a *oci.Artifact, file string, tools []string) artifact {
	return artifact{
		Reference: oci.Scheme + ref.At(a.Manifest).String(), Tag: ref.Tag, Digest: a.Manifest, Module: a.Digest, Size: a.Size, Source: text.Clip(a.Source(), 100), File: file, Tools: append([]string{}, tools...),
	}
}
