// Package signature makes and checks signatures of artifacts in the form of Sigstore: bundles, as cosign and others write them.
//
// A signature counts if it is of one of the signers that an operator names: a key, or an identity to which an authority of a trusted root has
// given a certificate. Nothing is asked of the network. What a registry sends as a signature is hostile: the caller bounds it, and this
// package turns whatever is wrong with it into an error.
package signature

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Max is how many bytes a bundle with a signature may have. Those of cosign have up to 10 KiB.
const Max = 256 << 10

const maxKey = 64 << 10 // bytes of a key file

// A Signer says whose signatures count: those of a key, or of an identity.
type Signer struct {
	// Key is a PEM file with a public key.
	Key string
	// Issuer is who vouched for the identity, such as https://token.actions.githubusercontent.com, and Subject the identity. It may end in a *
	// behind a / or an @, for all that begin like that: see CheckSubject.
	Issuer, Subject string
	// Root is a file with the trusted root, in the form of Sigstore's trusted_root.json.
	Root string
}

// Check returns what is missing in s, or too much.
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

// CheckSubject returns an error unless a subject names one identity, or those of one owner: a pattern is an address with a * at its end, behind
// a / or an @ and at least one part of the path.
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

// By is whose signature it is.
type By struct {
	// Key is the file of the key, or Issuer and Subject are those of the certificate.
	Key, Issuer, Subject string
	// Time is when it was signed, as far as a log or an authority says so.
	Time time.Time
}

// String returns it for people. Issuer and subject are foreign.
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

// A Statement is what a bundle says of an artifact.
type Statement struct {
	// PredicateType says what it is, such as https://slsa.dev/provenance/v1. It is foreign.
	PredicateType string
	// By is whose it is: who was verified, or what it says itself.
	By By
}

// A NoSignature is a statement of another kind than a signature.
type NoSignature struct{ PredicateType string }

// Error says of which.
func (e *NoSignature) Error() string {
	return "it is not a signature, but an attestation of the type " + text.ClipEscaped(e.PredicateType, 200)
}
