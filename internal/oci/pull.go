package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/toolsrv/toolsrv/internal/signature"
)

// An Artifact describes an artifact that was pulled or pushed.
type Artifact struct {
	// Manifest is the digest of its manifest, which identifies the artifact.
	Manifest string
	// Digest and Size describe the module.
	Digest string
	Size   int64
	// Annotations are the annotations of the manifest. They must not be trusted.
	Annotations map[string]string
	// By is whose signature was verified, if Options has Trust.
	By signature.By

	top ocispec.Descriptor // the manifest's
}

// Version returns the version in the manifest, or "". It must not be trusted.
func (a *Artifact) Version() string { return a.Annotations[versionAnnotation] }

// Source returns the digest of the source that the manifest names, or "". It must not be trusted.
func (a *Artifact) Source() string { return a.Annotations[sourceAnnotation] }

// Resolve returns the current digest of a reference. It is only the registry's claim until the artifact is pulled by it.
func (r *Registry) Resolve(ctx context.Context, ref Reference) (digest string, err error) {
	if ref.Digest != "" {
		return ref.Digest, nil
	}
	found, err := r.resolve(ctx, ref)
	return found.Digest.String(), err
}

// Find returns the digest for a tag of a repository, for a range of versions such as "~1.2", or for a digest. tag is the tag that was found.
func (r *Registry) Find(ctx context.Context, repository Reference, which string) (digest, tag string, err error) {
	switch {
	case CheckDigest(which) == nil:
		return which, "", nil
	case strings.HasPrefix(which, "~"):
		versions, err := ParseRange(which)
		if err != nil {
			return "", "", err
		}
		tags, err := r.Tags(ctx, repository)
		if err != nil {
			return "", "", err
		}
		if which, err = versions.Newest(tags); err != nil {
			return "", "", fmt.Errorf("%s: %w", repository, err)
		}
	}
	repository.Tag = which
	digest, err = r.Resolve(ctx, repository)
	return digest, which, err
}

func (r *Registry) resolve(ctx context.Context, ref Reference) (ocispec.Descriptor, error) {
	found, err := r.repository(ref).Manifests().Resolve(ctx, ref.which())
	if err != nil {
		return found, r.explain(ref.String(), err)
	}
	if err := checkDescriptor(found, maxManifest); err != nil {
		return found, fmt.Errorf("%s: its manifest %w", ref, err)
	}
	return found, nil
}

// checkDescriptor checks a registry's description of content.
func checkDescriptor(d ocispec.Descriptor, most int64) error {
	if d.Size < 0 || d.Size > most {
		return fmt.Errorf("has %d bytes; the limit is %d", d.Size, most)
	}
	return CheckDigest(d.Digest.String())
}

// Pull writes the module of an artifact to w. What was written is valid only if Pull returns no error: then the digests of the manifest and of the
// layer have been verified, and that of the manifest matches the reference, if the reference has a digest. All content from a registry goes through
// Pull, so every further check belongs here.
func (r *Registry) Pull(ctx context.Context, ref Reference, w io.Writer) (*Artifact, error) {
	a, err := r.pull(ctx, ref, w)
	if err != nil {
		return nil, r.explainPull(ref, err)
	}
	return a, nil
}

// explainPull adds the reference to an error that does not name it.
func (r *Registry) explainPull(ref Reference, err error) error {
	var own *formError
	if errors.As(err, &own) {
		return fmt.Errorf("%s: %w", ref, err)
	}
	return r.explain(ref.String(), err)
}

// A formError is an error in the form of an artifact.
type formError struct{ text string }

func (e *formError) Error() string { return e.text }

func misformed(format string, args ...any) error { return &formError{fmt.Sprintf(format, args...)} }

func (r *Registry) pull(ctx context.Context, ref Reference, w io.Writer) (*Artifact, error) {
	repository := r.repository(ref)
	found, err := repository.Manifests().Resolve(ctx, ref.which())
	if err != nil {
		return nil, err
	}
	top := found.Digest.String()
	if ref.Digest != "" && top != ref.Digest {
		return nil, misformed("the registry answered %.100s", top)
	}
	content, err := fetchManifest(ctx, repository, found)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(content)
	if err != nil {
		return nil, err
	}
	a := &Artifact{Manifest: top, Annotations: m.Annotations, top: found}
	if err := r.check(ctx, repository, found, content, a); err != nil {
		return nil, err
	}
	if m.isIndex() {
		one, err := m.forWasm()
		if err != nil {
			return nil, err
		}
		if content, err = fetchManifest(ctx, repository, one); err != nil {
			return nil, err
		}
		if m, err = readManifest(content); err != nil {
			return nil, err
		}
		if m.isIndex() {
			return nil, misformed("an index leads to another one")
		}
	}
	layer, unpack, err := m.module()
	if err != nil {
		return nil, err
	}
	if err := checkDescriptor(layer, r.maxModule); err != nil {
		return nil, misformed("its module %v", err)
	}
	from, err := repository.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	a.Digest, a.Size = layer.Digest.String(), layer.Size
	if unpack == nil { // the layer is the module, so it need not be hashed twice
		if all, ok := w.(interface{ Grow(n int) }); ok {
			all.Grow(int(layer.Size)) // the size was checked above
		}
		err = verified(from, layer, w)
	} else {
		to := &counted{w: w, sum: sha256.New()}
		err = verifiedThrough(from, layer, func(from io.Reader) error { return unpack(from, to, r.maxModule) })
		a.Digest, a.Size = "sha256:"+hex.EncodeToString(to.sum.Sum(nil)), to.n
	}
	if err != nil {
		return nil, fmt.Errorf("its module: %w", err)
	}
	return a, nil
}

// Source returns the source of an artifact's module, according to whoever pushed it. The artifact's manifest names it by digest, and the artifact has
// passed the checks that Options require.
func (r *Registry) Source(ctx context.Context, ref Reference) ([]SourceFile, *Artifact, error) {
	repository := r.repository(ref)
	a, err := r.verify(ctx, repository, ref)
	var files []SourceFile
	if err == nil {
		files, err = fetchSource(ctx, repository, a)
	}
	if err != nil {
		return nil, nil, r.explainPull(ref, err)
	}
	return files, a, nil
}

// SourceSize returns the size of an artifact's source in bytes, according to the registry, or ErrNoSource if the manifest names none.
func (r *Registry) SourceSize(ctx context.Context, ref Reference, a *Artifact) (int64, error) {
	layer, err := sourceOf(ctx, r.repository(ref), a)
	if err != nil {
		return 0, r.explainPull(ref, err)
	}
	return layer.Size, nil
}

// fetchManifest returns a manifest, whose digest has been verified.
func fetchManifest(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor) ([]byte, error) {
	if err := checkDescriptor(d, maxManifest); err != nil {
		return nil, misformed("its manifest %v", err)
	}
	from, err := repository.Manifests().Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	var content bytes.Buffer
	if err := verified(from, d, &content); err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	return content.Bytes(), nil
}

// counted is a writer that counts and hashes what it writes.
type counted struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.sum.Write(b[:n])
	c.n += int64(n)
	return n, err
}

// verified copies content that must match a descriptor. The copy is valid only if there is no error.
func verified(from io.Reader, d ocispec.Descriptor, to io.Writer) error {
	if d.Size >= aside {
		return verifiedAside(from, d, to)
	}
	return verifiedThrough(from, d, func(from io.Reader) error {
		_, err := io.Copy(to, from)
		return err
	})
}

// verifiedThrough calls use with a reader of content that must match a descriptor. It reads at most one byte more than the descriptor says.
func verifiedThrough(from io.Reader, d ocispec.Descriptor, use func(io.Reader) error) error {
	sum := sha256.New()
	limited := &io.LimitedReader{R: from, N: d.Size + 1}
	read := io.TeeReader(limited, sum)
	failed := use(read)
	// If the content does not match, the error says so, rather than what the content caused in the function use.
	_, err := io.Copy(io.Discard, read)
	return check(d, d.Size+1-limited.N, sum, err, failed)
}

// check returns why content does not match a descriptor. It is given how many bytes arrived and their hash, and the error that ended reading, if any.
// If the content matches, check returns the error of using it.
func check(d ocispec.Descriptor, got int64, sum hash.Hash, err, failed error) error {
	switch {
	case err != nil:
		return err
	case got > d.Size:
		return misformed("has more than the %d bytes that its manifest says", d.Size)
	case got < d.Size:
		return fmt.Errorf("ends after %d of %d bytes: %w", got, d.Size, io.ErrUnexpectedEOF)
	case digest.NewDigest(digest.SHA256, sum) != d.Digest:
		return misformed("doesn't match its digest: the registry, or somebody in between, has changed it")
	}
	return failed
}

// readManifest parses a manifest, or an index of manifests.
func readManifest(content []byte) (*manifest, error) {
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, misformed("its manifest is not valid")
	}
	if len(m.Layers) > 0 && len(m.Manifests) > 0 {
		return nil, misformed("its manifest has both layers and manifests")
	}
	return &m, nil
}
