// Package signature makes and checks signatures of artifacts in the form of Sigstore: bundles, as cosign and others write them.
//
// A signature counts if it is of one of the signers that an operator names: a key, or an identity to which an authority of a trusted root has
// given a certificate. Nothing is asked of the network. What a registry sends as a signature is hostile: the caller bounds it, and this
// package turns whatever is wrong with it into an error.
package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Max is how many bytes a bundle with a signature may have. Those of cosign have up to 10 KiB.
const Max = 256 << 10

const (
	maxKey  = 64 << 10 // bytes of a key file
	maxRoot = 4 << 20  // bytes of a trusted root
)

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
		return errors.New("a signer is a key, or an identity with issuer, subject and root, and not both")
	case s.Key != "":
		return nil
	case !identity:
		return errors.New("a signer needs a key, or an issuer, a subject and a root: without these, nobody is trusted")
	case s.Issuer == "":
		return errors.New("an identity needs its issuer: without it, anybody's word would count")
	case s.Subject == "":
		return errors.New("an identity needs its subject: without it, everybody would count that the issuer vouches for")
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
		return errors.New(`has a * that stands for anybody: write it behind the owner, as in "https://github.com/acme/*", or behind an @`)
	}
	return nil
}

// A Trust checks signatures. It is safe for concurrent use.
type Trust struct {
	checkers    []checker
	fingerprint string
}

// A checker has what is needed to check signatures of one signer.
type checker struct {
	Signer
	key      verifier // of a key; otherwise:
	verifier *verify.Verifier
	policy   verify.PolicyOption
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

// Open reads the files of signers, each of which suffices.
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

// Fingerprint differs where other signatures count.
func (t *Trust) Fingerprint() string { return t.fingerprint }

func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read what signatures are checked with: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = errors.New("is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("read what signatures are checked with: %s: %w", path, err)
	}
	return content, nil
}

// openRoot takes the authorities of a trusted root. What it has is asked for: a certificate in a log where it knows such logs, an entry in a log
// of signatures, and in any case the time of the signature from somebody whom it trusts, since certificates are good for minutes.
func (c *checker) openRoot(content []byte) error {
	trusted, err := root.NewTrustedRootFromJSON(content)
	if err != nil {
		return fmt.Errorf("%s is not a trusted root in the form of trusted_root.json: %w", c.Root, clip(err))
	}
	var options []verify.VerifierOption
	switch logs, clocks := len(trusted.RekorLogs()), len(trusted.TimestampingAuthorities()); {
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		return fmt.Errorf("%s has no authority that gives certificates", c.Root)
	case logs == 0 && clocks == 0:
		return fmt.Errorf("%s has no log and no authority of timestamps, so nobody says when something was signed", c.Root)
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

// clip is an error with foreign text.
func clip(err error) error { return errors.New(text.ClipEscaped(err.Error(), 400)) }
