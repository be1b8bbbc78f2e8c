// Package signature makes and checks signatures of artifacts in the form of Sigstore: bundles, as cosign and others write them.
//
// A signature is valid if one of the signers that an operator names has made it: a key, or an identity with a certificate of an authority in a
// trusted root. Nothing is read from the network. Signatures come from registries and are hostile: the caller must bound their size, and this package
// turns everything that is wrong with one into an error.
package signature

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Max is the largest bundle with a signature in bytes. Those of cosign have up to 10 KiB.
const Max = 256 << 10

const maxKey = 64 << 10 // bytes of a key file

// A Signer says whose signatures are valid: those of a key, or of an identity.
type Signer struct {
	// Key is a PEM file with a public key.
	Key string
	// Issuer is who vouches for the identity, such as https://token.actions.githubusercontent.com, and Subject is the identity. Subject may end in a
	// * after a / or an @, which stands for any text: see CheckSubject.
	Issuer, Subject string
	// Root is a file with the trusted root, in the form of Sigstore's trusted_root.json.
	Root string
}

// Check returns which fields of s are missing or superfluous, or nil.
func (s Signer) Check() error {
	identity := s.Issuer != "" || s.Subject != "" || s.Root != ""
	switch {
	case s.Key != "" && identity:
		return errors.New("a signer is either a key, or an identity with issuer, subject and root")
	case s.Key != "":
		return nil
	case !identity:
		return errors.New("a signer needs a key, or an issuer, a subject and a root: without these, nobody is trusted")
	case s.Issuer == "":
		return errors.New("an identity needs its issuer: without it, any issuer would count")
	case s.Subject == "":
		return errors.New("an identity needs its subject: without it, everybody whom the issuer vouches for would count")
	case s.Root == "":
		return errors.New("an identity needs a root: a file trusted_root.json with the authorities that may certify it")
	}
	return CheckSubject(s.Subject)
}

// CheckSubject returns an error unless a subject names one identity, or those of one owner: a pattern is an address with a * at its end, after a / or
// an @ and at least one part of the path.
func CheckSubject(subject string) error {
	prefix, isPattern := strings.CutSuffix(subject, "*")
	if strings.Contains(prefix, "*") {
		return errors.New("has a * that is not at its end")
	}
	if !isPattern {
		return nil
	}
	u, err := url.Parse(prefix)
	if err != nil || u.Host == "" || len(strings.Trim(u.Path, "/@")) == 0 || !strings.HasSuffix(prefix, "/") && !strings.HasSuffix(prefix, "@") {
		return errors.New(`has a * that stands for anybody: write it after the owner, as in "https://github.com/acme/*", or after an @`)
	}
	return nil
}

// A By says whose signature it is.
type By struct {
	// Either Key is set, to the file of the key, or Issuer and Subject, from the certificate.
	Key, Issuer, Subject string
	// Time is when the artifact was signed, if a log or an authority says when.
	Time time.Time
}

// String describes the signer for people. Issuer and subject are foreign text.
func (b By) String() string {
	if b.Key != "" {
		return "the key " + b.Key
	}
	return text.ClipEscaped(b.Subject, 300) + " of " + text.ClipEscaped(b.Issuer, 300)
}

const (
	// MediaType is the media type of a bundle.
	MediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// PredicateType is the type of a statement that only signs.
	PredicateType = "https://sigstore.dev/cosign/sign/v1"

	payloadType = "application/vnd.in-toto+json"
)

// A Statement is what a bundle says about an artifact.
type Statement struct {
	// PredicateType is the type of the statement, such as https://slsa.dev/provenance/v1. It is foreign text.
	PredicateType string
	// By is the verified signer. In a result of Claims, it is the signer that the bundle names.
	By By
}

// A NoSignature is the error for a statement that is not a signature.
type NoSignature struct{ PredicateType string }

// Error names the type of the statement.
func (e *NoSignature) Error() string {
	return "it is not a signature, but an attestation of the type " + text.ClipEscaped(e.PredicateType, 200)
}
