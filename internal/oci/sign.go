package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/toolsrv/toolsrv/internal/signature"
)

// Signatures and attestations are artifacts that refer to another one, with a bundle as their layer. cosign's older form has a tag made of the
// digest, and a layer for each signature.
const (
	maxReferrers   = 1000     // how many referrers are listed
	maxSignatures  = 50       // how many signatures are pulled
	maxAttestation = 16 << 20 // bytes of a bundle that is only displayed
	maxSimple      = 64 << 10 // bytes of a payload in cosign's older form

	predicateAnnotation = "dev.sigstore.bundle.predicateType"
	simpleType          = "application/vnd.dev.cosign.simplesigning.v1+json"
	simpleAnnotation    = "dev.cosignproject.cosign/signature"
	versionAnnotation   = "org.opencontainers.image.version"
)

// Sign signs an artifact, and attaches the signature to it. It returns the artifact's digest.
func (r *Registry) Sign(ctx context.Context, ref Reference, key *signature.Key) (digest string, err error) {
	repository := r.repository(ref)
	top, content, err := r.top(ctx, repository, ref)
	if err == nil {
		err = r.sign(ctx, repository, top, content, key)
	}
	if err != nil {
		return "", r.explainPull(ref, err)
	}
	return top.Digest.String(), nil
}

// Verify returns an artifact that has an accepted signature, without pulling its module.
func (r *Registry) Verify(ctx context.Context, ref Reference) (*Artifact, error) {
	a, err := r.verify(ctx, r.repository(ref), ref)
	if err != nil {
		return nil, r.explainPull(ref, err)
	}
	return a, nil
}

func (r *Registry) verify(ctx context.Context, repository *remote.Repository, ref Reference) (*Artifact, error) {
	top, content, err := r.top(ctx, repository, ref)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(content)
	if err != nil {
		return nil, err
	}
	a := &Artifact{Manifest: top.Digest.String(), Annotations: m.Annotations, top: top}
	return a, r.check(ctx, repository, top, content, a)
}

// top returns an artifact with its manifest.
func (r *Registry) top(ctx context.Context, repository *remote.Repository, ref Reference) (ocispec.Descriptor, []byte, error) {
	found, err := repository.Manifests().Resolve(ctx, ref.which())
	if err != nil {
		return found, nil, err
	}
	if ref.Digest != "" && found.Digest.String() != ref.Digest {
		return found, nil, misformed("the registry answered %.100s", found.Digest)
	}
	content, err := fetchManifest(ctx, repository, found)
	return found, content, err
}

// sign attaches a signature to an artifact.
func (r *Registry) sign(ctx context.Context, repository *remote.Repository, of ocispec.Descriptor, manifest []byte, key *signature.Key) error {
	bundle, err := key.Sign(sha256.Sum256(manifest))
	if err != nil {
		return misformed("%v", err)
	}
	layer := ocispec.Descriptor{MediaType: signature.MediaType, Digest: digest.FromBytes(bundle), Size: int64(len(bundle))}
	if err := attach(ctx, repository, of, signature.MediaType, layer, bundle, map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", predicateAnnotation: signature.PredicateType}); err != nil {
		return fmt.Errorf("attach the signature: %w", err)
	}
	return nil
}

// attach makes an artifact of one layer that refers to another artifact.
func attach(ctx context.Context, repository *remote.Repository, to ocispec.Descriptor, artifactType string, layer ocispec.Descriptor, content []byte, annotations map[string]string) error {
	config := ocispec.DescriptorEmptyJSON
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType,
		Config:       ocispec.Descriptor{MediaType: config.MediaType, Digest: config.Digest, Size: config.Size},
		Layers:       []ocispec.Descriptor{layer},
		Subject:      &ocispec.Descriptor{MediaType: to.MediaType, Digest: to.Digest, Size: to.Size},
		Annotations:  annotations,
	})
	if err != nil {
		return err
	}
	for _, blob := range []struct {
		ocispec.Descriptor
		content []byte
	}{{layer, content}, {config, config.Data}} {
		if err := repository.Blobs().Push(ctx, blob.Descriptor, bytes.NewReader(blob.content)); err != nil {
			return err
		}
	}
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(manifest), Size: int64(len(manifest))}
	return repository.Manifests().Push(ctx, d, bytes.NewReader(manifest))
}

// check returns an error unless an artifact has an accepted signature and the required version. It notes the signer in a.
func (r *Registry) check(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, manifest []byte, a *Artifact) (err error) {
	if r.trust != nil {
		if a.By, err = r.signer(ctx, repository, d, manifest); err != nil {
			return err
		}
	}
	if r.minimum == "" {
		return nil
	}
	said, ok := versionOf(a.Annotations[versionAnnotation])
	least, _ := versionOf(r.minimum) // the configuration has checked it
	switch {
	case !ok:
		return misformed("it has no version such as 1.2.0 in its annotation %s, and the minimum is %s", versionAnnotation, r.minimum)
	case said.compare(least) < 0:
		return misformed("it is version %.100s, and the minimum is %s: an older one may have been replayed", a.Annotations[versionAnnotation], r.minimum)
	}
	return nil
}

// signer returns which accepted signer has signed an artifact.
func (r *Registry) signer(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, manifest []byte) (by signature.By, err error) {
	var why error // why the first signature is not accepted
	count := 0
	note := func(err error) {
		// An error about a signature is more useful than the error that an attestation is not a signature.
		if _, isOther := errors.AsType[*signature.NoSignature](err); !isOther || why == nil {
			if _, was := errors.AsType[*signature.NoSignature](why); was || why == nil {
				why = err
			}
		}
		count++
	}
	found := false
	err = r.bundles(ctx, repository, d, signature.Max, func(bundle []byte, err error) bool {
		if err == nil {
			by, err = r.trust.Signature(bundle, manifest)
		}
		if err != nil {
			note(err)
		}
		found = err == nil
		return !found
	})
	if found {
		return by, nil
	}
	if err == nil && r.trust.Keys() {
		if by, found, err = r.simpleSigner(ctx, repository, d, manifest, note); found {
			return by, nil
		}
	}
	switch {
	case err != nil:
		return by, fmt.Errorf("its signatures: %w", err)
	case count == 0:
		return by, misformed("it is not signed: the registry has no signature of %s", d.Digest)
	case count == 1:
		return by, misformed("its signature is not valid: %v", why)
	}
	return by, misformed("none of its %d signatures is valid; of the first: %v", count, why)
}

// bundles calls use with each bundle that is attached to an artifact, or with why the bundle can't be read, until use returns false. Signatures
// come first, as far as the registry shows which bundles are signatures. most is the largest size of a bundle in bytes.
func (r *Registry) bundles(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, most int64, use func(bundle []byte, err error) (more bool)) error {
	all, err := referrers(ctx, repository, d, signature.MediaType, func(d ocispec.Descriptor) bool { return d.Annotations[predicateAnnotation] == signature.PredicateType })
	if err != nil {
		return err
	}
	for i, one := range all {
		if i == maxSignatures {
			return misformed("it has %d signatures and attestations, of which only the first %d are checked: remove some", len(all), maxSignatures)
		}
		bundle, err := fetchBundle(ctx, repository, one, most)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if (bundle != nil || err != nil) && !use(bundle, err) {
			return nil
		}
	}
	return nil
}

// referrers lists the artifacts of a type that refer to another one, as far as the registry shows types. Those whose type is certain come first.
func referrers(ctx context.Context, repository *remote.Repository, to ocispec.Descriptor, artifactType string, certain func(ocispec.Descriptor) bool) ([]ocispec.Descriptor, error) {
	var first, others []ocispec.Descriptor
	err := repository.Referrers(ctx, to, "", func(page []ocispec.Descriptor) error {
		for _, one := range page {
			switch {
			case certain(one):
				first = append(first, one)
			case one.ArtifactType == artifactType, one.ArtifactType == "", one.ArtifactType == ocispec.MediaTypeEmptyJSON: // some registries report this as the type
				others = append(others, one)
			}
		}
		if len(first)+len(others) > maxReferrers {
			return misformed("more than %d artifacts refer to it, which is too many to search", maxReferrers)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return nil, err
	}
	return append(first, others...), nil
}

// fetchBundle returns the bundle of an artifact, or nil if it is of another kind.
func fetchBundle(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, most int64) ([]byte, error) {
	content, err := fetchManifest(ctx, repository, d)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(content)
	if err != nil {
		return nil, err
	}
	if m.ArtifactType != signature.MediaType {
		return nil, nil
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != signature.MediaType {
		return nil, misformed("it has no bundle: it needs one layer of the type %s", signature.MediaType)
	}
	return fetchBlob(ctx, repository, m.Layers[0], most)
}

func fetchBlob(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, most int64) ([]byte, error) {
	if err := checkDescriptor(d, most); err != nil {
		return nil, misformed("it %v", err)
	}
	from, err := repository.Blobs().Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	var content bytes.Buffer
	if err := verified(from, d, &content); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// simpleSigner returns the signer whose key has signed an artifact in cosign's older form.
func (r *Registry) simpleSigner(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, manifest []byte, note func(error)) (by signature.By, found bool, err error) {
	at, err := repository.Manifests().Resolve(ctx, strings.Replace(d.Digest.String(), ":", "-", 1)+".sig")
	if errors.Is(err, errdef.ErrNotFound) {
		return by, false, nil
	}
	if err != nil {
		return by, false, err
	}
	content, err := fetchManifest(ctx, repository, at)
	if err != nil {
		return by, false, err
	}
	m, err := readManifest(content)
	if err != nil {
		return by, false, err
	}
	for i, layer := range m.Layers {
		if i == maxSignatures {
			return by, false, misformed("it has %d signatures in cosign's older form, of which only the first %d are checked", len(m.Layers), maxSignatures)
		}
		if layer.MediaType != simpleType {
			continue
		}
		sig, err := base64.StdEncoding.DecodeString(layer.Annotations[simpleAnnotation])
		var payload []byte
		if err != nil {
			err = misformed("its signature is not in base64")
		} else if payload, err = fetchBlob(ctx, repository, layer, maxSimple); err == nil {
			if by, err = r.trust.Simple(payload, sig, manifest); err == nil {
				return by, true, nil
			}
		}
		note(err)
	}
	return by, false, nil
}

// Policy returns a text that identifies which artifacts may be pulled; "" means all of them.
func (r *Registry) Policy() string {
	if r.trust == nil {
		return r.minimum
	}
	return r.trust.Fingerprint() + " " + r.minimum
}

// An Attestation is a statement about an artifact.
type Attestation struct {
	signature.Statement
	// Wrong is why the attestation can't be read or, if a check was asked for, was not verified.
	Wrong error
}

// Attestations returns the statements about an artifact, including signatures: at most fifty. trust says whose statements are verified; if nil, none
// are.
func (r *Registry) Attestations(ctx context.Context, ref Reference, trust *signature.Trust) ([]Attestation, error) {
	repository := r.repository(ref)
	top, content, err := r.top(ctx, repository, ref)
	if err != nil {
		return nil, r.explainPull(ref, err)
	}
	var all []Attestation
	err = r.bundles(ctx, repository, top, maxAttestation, func(bundle []byte, err error) bool {
		var a Attestation
		if err == nil {
			a.Statement, err = signature.Claims(bundle)
		}
		if err == nil && trust != nil {
			var s signature.Statement
			if s, a.Wrong = trust.Statement(bundle, content); a.Wrong == nil {
				a.Statement = s
			}
		}
		if err != nil {
			a.Wrong = err
		}
		all = append(all, a)
		return true
	})
	if err != nil {
		return nil, r.explainPull(ref, err)
	}
	return all, nil
}
