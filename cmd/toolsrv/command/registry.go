package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/text"
)

// registryFlags are the flags of the commands that ask a registry.
type registryFlags struct {
	options oci.Options
	asJSON  bool
}

func (f *registryFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.asJSON, "json", false, "print a JSON object")
	flags.BoolVar(&f.options.PlainHTTP, "plain-http", false, "ask over HTTP, as a registry on loopback is without it")
	flags.Var((*fileFlag)(&f.options.CA), "ca", "PEM `file` with authorities that are trusted beside the system's")
	flags.Var((*fileFlag)(&f.options.Credentials), "credentials", "`file` in the form of docker's config.json (default docker's and podman's)")
	completeFlag(cmd, "ca", cobra.FixedCompletions([]cobra.Completion{"pem", "crt"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "credentials", cobra.FixedCompletions([]cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt))
}

// open opens a registry as the flags say. The caller closes it.
func (f *registryFlags) open(host string) (*oci.Registry, error) {
	o := f.options
	o.MaxModule, o.Agent = sandbox.MaxModule, "toolsrv"
	if b, err := readBuild(); err == nil {
		o.Agent = "toolsrv/" + b.Version
	}
	return oci.Open(host, o)
}

// ask opens a registry, and shows what it waits for while do asks it, until the user interrupts.
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

// artifactArgument reads a reference that a user has typed.
func artifactArgument(typed string) (oci.Reference, error) {
	ref, err := oci.ParseReference(typed)
	if err != nil {
		return ref, &usageError{err}
	}
	return ref, nil
}

// artifact is what `push --json` and `pull --json` print. Its members are stable.
type artifact struct {
	// Reference has the digest of the artifact: who writes it down gets the same one again.
	Reference string `json:"reference"`
	Tag       string `json:"tag,omitempty"`
	Digest    string `json:"digest"`
	// Module and Size are the digest of the .wasm file, and its bytes.
	Module string `json:"module"`
	Size   int64  `json:"size"`
	// Source is the digest of what a script's module was made of.
	Source string   `json:"source,omitempty"`
	File   string   `json:"file"`
	Tools  []string `json:"tools"`
}

func newArtifact(ref oci.Reference, a *oci.Artifact, file string, tools []string) artifact {
	return artifact{
		Reference: oci.Scheme + ref.At(a.Manifest).String(), Tag: ref.Tag, Digest: a.Manifest, Module: a.Digest, Size: a.Size, Source: text.Clip(a.Source(), 100), File: file, Tools: append([]string{}, tools...),
	}
}
