package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"oras.land/oras-go/v2/registry"
)

// Scheme is the beginning of a reference.
const Scheme = "oci://"

// maxName is how many bytes the name of a repository or a tag may have.
const maxName = 255

// A Reference names an artifact by a tag or by a digest. With neither it names a repository.
type Reference struct {
	Host, Repository string
	// Tag is a tag such as "1.2.0", and Digest "sha256:" with 64 hexadecimal digits. At least one of them is empty.
	Tag, Digest string
}

// ParseReference reads a reference, such as oci://ghcr.io/acme/csv:1.2.0 or oci://ghcr.io/acme/csv@sha256:…, with oci:// or without.
func ParseReference(s string) (Reference, error) {
	bare := strings.TrimPrefix(s, Scheme)
	if _, digest, ok := strings.Cut(bare, "@"); ok {
		if err := CheckDigest(digest); err != nil {
			return Reference{}, err
		}
	}
	parsed, err := registry.ParseReference(bare)
	if err != nil || len(bare) > 2*maxName || len(parsed.Repository) > maxName || strings.ContainsAny(bare, "%?#\\") {
		return Reference{}, fmt.Errorf("%.200q does not name an artifact: write one such as oci://ghcr.io/acme/csv:1.2.0, in lower case", s)
	}
	ref := Reference{Host: parsed.Registry, Repository: parsed.Repository}
	switch {
	case strings.Contains(parsed.Reference, ":"):
		ref.Digest = parsed.Reference
		if err := CheckDigest(ref.Digest); err != nil {
			return Reference{}, err
		}
	default:
		ref.Tag = parsed.Reference
	}
	return ref, nil
}

// CheckDigest returns an error unless this package can verify a digest.
func CheckDigest(digest string) error {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if b, err := hex.DecodeString(sum); !ok || err != nil || len(b) != sha256.Size || strings.ToLower(sum) != sum {
		return fmt.Errorf("%.100q is not a supported digest: write sha256: and its 64 digits", digest)
	}
	return nil
}

// CheckTag returns an error if a tag is not valid in registries.
func CheckTag(tag string) error {
	if err := (registry.Reference{Reference: tag}).ValidateReferenceAsTag(); err != nil {
		return fmt.Errorf("%.100q is not a tag: letters, digits, and ._- are valid", tag)
	}
	return nil
}

// String returns the reference without oci://, as in docker and other programs.
func (r Reference) String() string {
	s := r.Host + "/" + r.Repository
	switch {
	case r.Digest != "":
		return s + "@" + r.Digest
	case r.Tag != "":
		return s + ":" + r.Tag
	}
	return s
}

// At returns the reference of the artifact with a digest in the same repository.
func (r Reference) At(digest string) Reference {
	r.Tag, r.Digest = "", digest
	return r
}

// which returns the tag or the digest. If there is neither, it returns the tag latest, as other clients of registries do.
func (r Reference) which() string {
	switch {
	case r.Digest != "":
		return r.Digest
	case r.Tag != "":
		return r.Tag
	}
	return "latest"
}
