//go:build !lean

package signature

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/toolsrv/toolsrv/internal/text"
)

const maxRoot = 4 << 20 // bytes of a trusted root

// A Trust checks signatures. It is safe for concurrent use.
type Trust struct {
	checkers    []checker
	fingerprint string
}

// A checker checks the signatures of one signer.
type checker struct {
	Signer
	key      verifier // checks signatures with a key; the fields below are for an identity
	verifier *verify.Verifier
	policy   verify.PolicyOption
}

// verifier checks signatures with a key.
type verifier = signature.Verifier

// Open reads the files of signers. A signature of any of them is valid.
func Open(signers []Signer) (*Trust, error) {
	if len(signers) == 0 {
		return nil, errors.New("there is no signer, so nothing could be trusted")
	}
	t, sum := &Trust{}, sha256.New()
	for _, s := range signers {
		if err := s.Check(); err != nil {
			return nil, err
		}
		c := checker{Signer: s}
		var content []byte
		var err error
		if s.Key != "" {
			if content, err = readFile(s.Key, maxKey); err == nil {
				err = c.openKey(content)
			}
		} else if content, err = readFile(s.Root, maxRoot); err == nil {
			err = c.openRoot(content)
		}
		if err != nil {
			return nil, err
		}
		t.checkers = append(t.checkers, c)
		about, err := json.Marshal([]string{string(content), s.Issuer, s.Subject})
		if err != nil {
			return nil, err
		}
		sum.Write(about)
	}
	t.fingerprint = hex.EncodeToString(sum.Sum(nil))
	return t, nil
}

// Fingerprint returns a text that changes when other signatures become valid.
func (t *Trust) Fingerprint() string { return t.fingerprint }

// openKey reads a public key.
func (c *checker) openKey(content []byte) error {
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "PUBLIC KEY" {
		return fmt.Errorf("%s has no public key: name the PEM file that begins with BEGIN PUBLIC KEY, such as cosign.pub", c.Key)
	}
	if hasSeveral(content) {
		return fmt.Errorf("%s has more than one key: put each into a file of its own, and name each file in a signer of its own", c.Key)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err == nil {
		err = checkKey(public)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	if c.key, err = signature.LoadVerifier(public, crypto.SHA256); err != nil {
		return err
	}
	key := root.NewExpiringKey(c.key, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return key, nil })
	c.verifier, err = verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
	c.policy = verify.WithKey()
	return err
}

// openRoot reads the authorities of a trusted root. If the root has logs of certificates, the certificate must be in one; if it has logs of
// signatures, the signature must be in one. In any case somebody whom the root trusts must have confirmed the time of the signature, since
// certificates are only valid for minutes.
func (c *checker) openRoot(content []byte) error {
	trusted, err := root.NewTrustedRootFromJSON(content)
	if err != nil {
		return fmt.Errorf("%s is not a trusted root in the format of trusted_root.json: %w", c.Root, clip(err))
	}
	var options []verify.VerifierOption
	switch logs, clocks := len(trusted.RekorLogs()), len(trusted.TimestampingAuthorities()); {
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		return fmt.Errorf("%s has no authority that gives certificates", c.Root)
	case logs == 0 && clocks == 0:
		return fmt.Errorf("%s has neither a log nor a timestamp authority, so nobody can say when something was signed", c.Root)
	case logs == 0:
		options = append(options, verify.WithSignedTimestamps(1))
	default:
		options = append(options, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
	}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	if c.verifier, err = verify.NewVerifier(trusted, append(options, verify.WithoutStatementPredicate())...); err != nil {
		return err
	}
	var identity verify.CertificateIdentity
	if prefix, ok := strings.CutSuffix(c.Subject, "*"); ok {
		identity, err = verify.NewShortCertificateIdentity(c.Issuer, "", "", `\A`+regexp.QuoteMeta(prefix)+`\S+\z`)
	} else {
		identity, err = verify.NewShortCertificateIdentity(c.Issuer, "", c.Subject, "")
	}
	c.policy = verify.WithCertificateIdentity(identity)
	return err
}

// clip returns an error whose foreign text is shortened.
func clip(err error) error { return errors.New(text.ClipEscaped(err.Error(), 400)) }
