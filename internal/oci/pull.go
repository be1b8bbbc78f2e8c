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

// An Artifact is what was pulled or pushed.
type Artifact struct {
	// Manifest is the digest of its manifest, which is the artifact's.
	Manifest string
	// Digest and Size are those of the module.
	Digest string
	Size   int64
	// Annotations are those of the manifest. They are foreign.
	Annotations map[string]string
	// By is whose signature was verified, where Options has Trust.
	By signature.By

	top ocispec.Descriptor // the manifest's
}

// Version returns the version that the manifest says, or "". It is foreign.
func (a *Artifact) Version() string { return a.Annotations[versionAnnotation] }

// Source returns the digest of the source that the manifest names, or "". It is foreign.
func (a *Artifact) Source() string { return a.Annotations[sourceAnnotation] }

// Resolve returns the digest that a reference has now. It is the registry's word until the artifact is pulled by it.
func (r *Registry) Resolve(ctx context.Context, ref Reference) (digest string, err error) {
	if ref.Digest != "" {
		return ref.Digest, nil
	}
	found, err := r.resolve(ctx, ref)
	return found.Digest.String(), err
}

// Find returns the digest of what is meant by a tag of a repository, by a range of versions such as "~1.2", or by a digest. tag is the one that
// it has.
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

// checkDescriptor bounds what a registry says of content.
func checkDescriptor(d ocispec.Descriptor, most int64) error {
	if d.Size < 0 || d.Size > most {
		return fmt.Errorf("has %d bytes; the limit is %d", d.Size, most)
	}
	return CheckDigest(d.Digest.String())
}

// Pull writes the module of an artifact to w. Only if it returns no error, what was written is the module: the digests of the manifest and of
// the layer have been verified then, and the manifest's is the one of the reference, if that has one. Nothing else gives out what comes from
// a registry, so what else must be verified belongs here.
func (r *Registry) Pull(ctx context.Context, ref Reference, w io.Writer) (*Artifact, error) {
	a, err := r.pull(ctx, ref, w)
	if err != nil {
		return nil, r.explainPull(ref, err)
	}
	return a, nil
}

// explainPull adds the reference to an error that does not have it.
func (r *Registry) explainPull(ref Reference, err error) error {
	var own *formError
	if errors.As(err, &own) {
		return fmt.Errorf("%s: %w", ref, err)
	}
	return r.explain(ref.String(), err)
}

// A formError is what is wrong with an artifact.
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
	if unpack == nil { // the layer is the module, which is not summed twice
		if all, ok := w.(interface{ Grow(n int) }); ok {
			all.Grow(int(layer.Size)) // it is bounded above
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

// Source returns what the module of an artifact was made of, as whoever pushed it says. It is what the artifact's manifest names by its digest, and
// the artifact has passed what Options ask for.
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

// SourceSize returns how many bytes the source of an artifact has, as the registry says, and ErrNoSource where none is named.
func (r *Registry) SourceSize(ctx context.Context, ref Reference, a *Artifact) (int64, error) {
	layer, err := sourceOf(ctx, r.repository(ref), a)
	if err != nil {
		return 0, r.explainPull(ref, err)
	}
	return layer.Size, nil
}

// fetchManifest returns a manifest, which is what its digest says.
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

// counted writes, and counts and sums what it writes.
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

// verified copies content that must be what a descriptor says. Only without an error it is.
func verified(from io.Reader, d ocispec.Descriptor, to io.Writer) error {
	if d.Size >= aside {
		return verifiedAside(from, d, to)
	}
	return verifiedThrough(from, d, func(from io.Reader) error {
		_, err := io.Copy(to, from)
		return err
	})
}

// verifiedThrough has use read content, which must be what a descriptor says: at most a byte more is read.
func verifiedThrough(from io.Reader, d ocispec.Descriptor, use func(io.Reader) error) error {
	sum := sha256.New()
	limited := &io.LimitedReader{R: from, N: d.Size + 1}
	read := io.TeeReader(limited, sum)
	failed := use(read)
	// Content that is not what was said is the error, not what it led to.
	_, err := io.Copy(io.Discard, read)
	return check(d, d.Size+1-limited.N, sum, err, failed)
}

// check returns why content is not what a descriptor says: so many bytes with this sum came, up to an error or the end. Otherwise it returns what
// using them led to.
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

// readManifest reads a manifest, or an index of some.
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
