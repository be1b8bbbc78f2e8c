//go:build !lean

package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	bundles "github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Signature returns the signer of an artifact, if the bundle has a valid signature. artifact is the content of its manifest. An attestation is not
// a signature: somebody who lists the faults of a module has not said that it should run.
func (t *Trust) Signature(bundle, artifact []byte) (By, error) {
	s, err := t.Statement(bundle, artifact)
	if err == nil && s.PredicateType != PredicateType {
		return By{}, &NoSignature{s.PredicateType}
	}
	return s.By, err
}

// Statement returns what a bundle says about an artifact. One of the signers must have signed it.
func (t *Trust) Statement(bundle, artifact []byte) (s Statement, err error) {
	defer recoverInto(&err)
	b, err := parse(bundle)
	if err != nil {
		return s, err
	}
	sum := sha256.Sum256(artifact)
	if e := b.GetDsseEnvelope(); e != nil && e.GetPayloadType() != payloadType {
		return s, fmt.Errorf("it signs something of the type %s, not a statement", text.ClipEscaped(e.GetPayloadType(), 100))
	}
	var first error
	for i := range t.checkers {
		c := &t.checkers[i]
		about := verify.WithArtifactDigest("sha256", sum[:])
		if b.GetDsseEnvelope() == nil { // a plain message, since Ed25519 does not sign a digest
			about = verify.WithArtifact(bytes.NewReader(artifact))
		}
		result, err := c.verifier.Verify(b, verify.NewPolicy(about, c.policy))
		if err == nil {
			return told(c, result), nil
		}
		if err = c.explain(err); first == nil || isOtherKind(first) {
			first = err
		}
	}
	return s, first
}

// errOtherKind is returned for a signature with a key where an identity must sign, and the other way round.
var errOtherKind = errors.New("it is signed in another way")

func isOtherKind(err error) bool { return errors.Is(err, errOtherKind) }

// told returns the content of a verified bundle.
func told(c *checker, result *verify.VerificationResult) Statement {
	s := Statement{PredicateType: PredicateType} // without a statement, it is a plain signature
	if result.Statement != nil {
		s.PredicateType = result.Statement.GetPredicateType()
	}
	s.By.Key = c.Key
	if result.Signature != nil && result.Signature.Certificate != nil {
		s.By.Issuer, s.By.Subject = result.Signature.Certificate.Issuer, result.Signature.Certificate.SubjectAlternativeName
	}
	for _, at := range result.VerifiedTimestamps {
		if s.By.Time.IsZero() || at.Timestamp.Before(s.By.Time) {
			s.By.Time = at.Timestamp
		}
	}
	return s
}

// explain says why a signature does not count.
func (c *checker) explain(err error) error {
	if c.Key != "" {
		if err.Error() == "expected key signature, not certificate" {
			return fmt.Errorf("%w: with a certificate, not with the key %s", errOtherKind, c.Key)
		}
		return fmt.Errorf("it was not made with the key %s, or not for this artifact", c.Key)
	}
	if mismatch, ok := errors.AsType[*verify.ErrNoMatchingCertificateIdentity](err); ok {
		return fmt.Errorf("it was signed by somebody else, not by %s of %s: %w", c.Subject, c.Issuer, clip(mismatch))
	}
	return clip(err)
}

// parse reads a bundle.
func parse(content []byte) (*bundles.Bundle, error) {
	var b bundles.Bundle
	if err := b.UnmarshalJSON(content); err != nil {
		return nil, fmt.Errorf("it is not a bundle in Sigstore's format: %w", clip(err))
	}
	return &b, nil
}

// Claims returns what a bundle says, without verifying it.
func Claims(bundle []byte) (s Statement, err error) {
	defer recoverInto(&err)
	b, err := parse(bundle)
	if err != nil {
		return s, err
	}
	s.PredicateType = PredicateType
	if e := b.GetDsseEnvelope(); e != nil {
		var said struct {
			PredicateType string `json:"predicateType"`
		}
		if err := json.Unmarshal(e.GetPayload(), &said); err != nil {
			return s, errors.New("it has no statement")
		}
		s.PredicateType = said.PredicateType
	}
	return s, nil
}

// recoverInto turns a panic in the library, which reads foreign bytes, into an error.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it can't be read: %s", text.ClipEscaped(fmt.Sprint(p), 200))
	}
}

// simple is the payload of a signature in cosign's older format.
type simple struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// Simple returns the signer whose key has signed an artifact in cosign's older format: a payload with the artifact's digest, and a signature of
// the payload. Certificates in that format are not supported.
func (t *Trust) Simple(payload, sig, artifact []byte) (by By, err error) {
	defer recoverInto(&err)
	for i := range t.checkers {
		c := &t.checkers[i]
		if c.key == nil || c.key.VerifySignature(bytes.NewReader(sig), bytes.NewReader(payload)) != nil {
			continue
		}
		var s simple
		sum := sha256.Sum256(artifact)
		switch err := json.Unmarshal(payload, &s); {
		case err != nil:
			return by, errors.New("its payload is not in cosign's form")
		case s.Critical.Type != "cosign container image signature":
			return by, fmt.Errorf("it signs something else: %s", text.ClipEscaped(s.Critical.Type, 100))
		case s.Critical.Image.Digest != "sha256:"+hex.EncodeToString(sum[:]):
			return by, fmt.Errorf("it is for another artifact: %s", text.ClipEscaped(s.Critical.Image.Digest, 100))
		}
		return By{Key: c.Key}, nil
	}
	return by, errors.New("it was made with none of the keys")
}

// Keys reports whether one of the signers is a key.
func (t *Trust) Keys() bool {
	for i := range t.checkers {
		if t.checkers[i].key != nil {
			return true
		}
	}
	return false
}
