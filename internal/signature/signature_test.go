package signature_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	bundles "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/testkit/sigstoretest"
)

const (
	issuer  = "https://token.actions.githubusercontent.com"
	subject = "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/v1.2.0"
)

var artifact = []byte(`{"schemaVersion":2}`)

func open(t testing.TB, signers ...signature.Signer) *signature.Trust {
	t.Helper()
	trust, err := signature.Open(signers)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// wants reports whether an error contains a text, or for an empty text whether there is no error.
func wants(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestIdentity checks signatures of identities. Each one with any fault is refused.
func TestIdentity(t *testing.T) {
	t.Parallel()
	s, other := sigstoretest.New(t), sigstoretest.New(t)
	soon := time.Now().Add(5 * time.Minute)
	statement := sigstoretest.Statement(signature.PredicateType, artifact)
	good := func() *bundles.Bundle { return s.Attest(subject, issuer, statement, soon) }
	file := s.Root(nil)
	for name, c := range map[string]struct {
		signer signature.Signer
		bundle *bundles.Bundle
		want   string
	}{
		"right":           {signature.Signer{Issuer: issuer, Subject: subject}, good(), ""},
		"of an owner":     {signature.Signer{Issuer: issuer, Subject: "https://github.com/acme/*"}, good(), ""},
		"of tags":         {signature.Signer{Issuer: issuer, Subject: "https://github.com/acme/tools/.github/workflows/release.yml@*"}, good(), ""},
		"a plain message": {signature.Signer{Issuer: issuer, Subject: subject}, s.Message(subject, issuer, artifact), ""},

		"a wrong identity":                  {signature.Signer{Issuer: issuer, Subject: "ann@example.com"}, good(), "it was signed by somebody else, not by ann@example.com of " + issuer},
		"of another owner":                  {signature.Signer{Issuer: issuer, Subject: "https://github.com/acm/*"}, good(), "it was signed by somebody else"},
		"the beginning only":                {signature.Signer{Issuer: issuer, Subject: subject[:len(subject)-1]}, good(), "it was signed by somebody else"},
		"nothing in place of the *":         {signature.Signer{Issuer: issuer, Subject: "https://github.com/acme/tools/*"}, s.Attest("https://github.com/acme/tools/", issuer, statement, soon), "it was signed by somebody else"},
		"the owner within":                  {signature.Signer{Issuer: issuer, Subject: "https://github.com/acme/*"}, s.Attest("https://evil.example/https://github.com/acme/x", issuer, statement, soon), "it was signed by somebody else"},
		"a dot matches only a dot":          {signature.Signer{Issuer: issuer, Subject: "https://github.com/acme/*"}, s.Attest("https://githubxcom/acme/x", issuer, statement, soon), "it was signed by somebody else"},
		"two lines":                         {signature.Signer{Issuer: issuer, Subject: "https://github.com/acme/*"}, s.Attest("x\nhttps://github.com/acme/x", issuer, statement, soon), "it was signed by somebody else"},
		"a wrong issuer":                    {signature.Signer{Issuer: "https://accounts.example.com", Subject: subject}, good(), "it was signed by somebody else"},
		"no issuer inside":                  {signature.Signer{Issuer: issuer, Subject: subject}, s.Attest(subject, "", statement, soon), "it was signed by somebody else"},
		"of another authority":              {signature.Signer{Issuer: issuer, Subject: subject}, other.Attest(subject, issuer, statement, soon), "log"},
		"an expired certificate":            {signature.Signer{Issuer: issuer, Subject: subject}, s.Attest(subject, issuer, statement, time.Now().Add(30*time.Minute)), "integrated time outside certificate validity"},
		"a log entry from half an hour ago": {signature.Signer{Issuer: issuer, Subject: subject}, s.Attest(subject, issuer, statement, time.Now().Add(-30*time.Minute)), "integrated time outside certificate validity"},
		"another artifact":                  {signature.Signer{Issuer: issuer, Subject: subject}, s.Attest(subject, issuer, sigstoretest.Statement(signature.PredicateType, []byte("x")), soon), "digest"},
		"another message":                   {signature.Signer{Issuer: issuer, Subject: subject}, s.Message(subject, issuer, []byte("x")), "could not verify message"},
		"not in the log": {signature.Signer{Issuer: issuer, Subject: subject}, changed(good(), func(b *bundles.Bundle) {
			b.VerificationMaterial.TlogEntries = nil
		}), "not enough verified log entries"},
		"a log entry of another signature": {signature.Signer{Issuer: issuer, Subject: subject}, changed(good(), func(b *bundles.Bundle) {
			b.VerificationMaterial.TlogEntries = good().VerificationMaterial.TlogEntries
		}), "transparency log signature does not match"},
		"a log entry that was changed": {signature.Signer{Issuer: issuer, Subject: subject}, changed(good(), func(b *bundles.Bundle) {
			b.VerificationMaterial.TlogEntries[0].IntegratedTime++
		}), "not enough verified log entries"},
		"a log entry elsewhere": {signature.Signer{Issuer: issuer, Subject: subject}, changed(good(), func(b *bundles.Bundle) {
			b.VerificationMaterial.TlogEntries[0].InclusionProof.RootHash[0] ^= 1
		}), "verif"},
		"a key in place of a certificate": {signature.Signer{Issuer: issuer, Subject: subject}, sigstoretest.KeyMessage(t, certtest.NewKey(t), artifact), "verif"},
		"another signer's certificate": {signature.Signer{Issuer: issuer, Subject: subject}, changed(s.Attest("eve@example.com", issuer, statement, soon), func(b *bundles.Bundle) {
			b.VerificationMaterial.Content = good().VerificationMaterial.Content
		}), "transparency log certificate does not match"},
		"no signature": {signature.Signer{Issuer: issuer, Subject: subject}, changed(good(), func(b *bundles.Bundle) {
			b.GetDsseEnvelope().Signatures = nil
		}), "log"},
		"an attestation":            {signature.Signer{Issuer: issuer, Subject: subject}, s.Attest(subject, issuer, sigstoretest.Statement("https://slsa.dev/provenance/v1", artifact), soon), "it is not a signature, but an attestation of the type https://slsa.dev/provenance/v1"},
		"no statement":              {signature.Signer{Issuer: issuer, Subject: subject}, s.Attest(subject, issuer, []byte("{}"), soon), "verif"},
		"a statement about nothing": {signature.Signer{Issuer: issuer, Subject: subject}, s.Attest(subject, issuer, []byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"`+signature.PredicateType+`"}`), soon), "verif"},
	} {
		t.Run(name, func(t *testing.T) {
			c.signer.Root = file
			by, err := open(t, c.signer).Signature(sigstoretest.JSON(t, c.bundle), artifact)
			wants(t, err, c.want)
			if err == nil && (by.Issuer != issuer || by.Subject != subject || by.Key != "" || by.Time.IsZero() || by.String() != subject+" of "+issuer) {
				t.Errorf("got %+v, %s", by, by)
			}
		})
	}
}

func changed(b *bundles.Bundle, change func(*bundles.Bundle)) *bundles.Bundle {
	change(b)
	return b
}

// TestRoots opens trusted roots that lack something, and checks that a signature must have what its root requires.
func TestRoots(t *testing.T) {
	t.Parallel()
	s := sigstoretest.New(t)
	noLog := s.Root(func(_ *[]root.CertificateAuthority, _ *[]root.TimestampingAuthority, logs map[string]*root.TransparencyLog) {
		clear(logs)
	})
	for path, want := range map[string]string{
		s.Root(func(a *[]root.CertificateAuthority, _ *[]root.TimestampingAuthority, _ map[string]*root.TransparencyLog) {
			*a = nil
		}): "has no authority that gives certificates",
		s.Root(func(_ *[]root.CertificateAuthority, clocks *[]root.TimestampingAuthority, logs map[string]*root.TransparencyLog) {
			*clocks = nil
			clear(logs)
		}): "nobody can say when something was signed",
		testkit.Put(t, t.TempDir(), "root.json", "{"):                        "is not a trusted root",
		testkit.Put(t, t.TempDir(), "root.json", "{}"):                       "is not a trusted root",
		testkit.Put(t, t.TempDir(), "root.json", strings.Repeat(" ", 5<<20)): "is larger than 4 MiB",
		filepath.Join(t.TempDir(), "none.json"):                              "no such file",
		noLog:                                                                "",
	} {
		_, err := signature.Open([]signature.Signer{{Issuer: issuer, Subject: subject, Root: path}})
		wants(t, err, want)
	}
	// Without a log, a timestamp is required, and without both, no signature is valid.
	b := s.Attest(subject, issuer, sigstoretest.Statement(signature.PredicateType, artifact), time.Now().Add(time.Hour))
	b.VerificationMaterial.TlogEntries = nil
	trust := open(t, signature.Signer{Issuer: issuer, Subject: subject, Root: noLog})
	_, err := trust.Signature(sigstoretest.JSON(t, b), artifact)
	wants(t, err, "")
	b.VerificationMaterial.TimestampVerificationData = nil
	_, err = trust.Signature(sigstoretest.JSON(t, b), artifact)
	wants(t, err, "timestamp")
}

// TestSigners checks that signers that would match anybody are refused.
func TestSigners(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signer signature.Signer
		want   string
	}{
		{signature.Signer{}, "needs a key, or an issuer"},
		{signature.Signer{Key: "k", Issuer: "i"}, "a signer is either a key, or an identity"},
		{signature.Signer{Subject: "s", Root: "r"}, "an identity needs its issuer"},
		{signature.Signer{Issuer: "i", Root: "r"}, "an identity needs its subject"},
		{signature.Signer{Issuer: "i", Subject: "s"}, "an identity needs a root"},
	} {
		wants(t, c.signer.Check(), c.want)
	}
	if _, err := signature.Open(nil); err == nil {
		t.Error("without a signer: got no error")
	}
	for subject, want := range map[string]string{
		"ann@example.com": "", "https://github.com/acme/*": "", "https://github.com/acme/tools/w.yml@*": "", "https://github.com/acme/w.yml@refs/tags/*": "",
		"*": "anybody", "*@example.com": "not at its end", "https://*": "anybody", "https://github.com/*": "anybody", "https://github.com//*": "anybody",
		"https://github.com/acme*": "anybody", "a*b": "not at its end", "https://github.com/acme/**": "not at its end", "acme/*": "anybody", "https://github.com/@*": "anybody", "ann@*": "anybody",
	} {
		t.Run(subject, func(t *testing.T) { wants(t, signature.CheckSubject(subject), want) })
	}
}

func write(t testing.TB, kind string, der []byte) string {
	t.Helper()
	return testkit.Put(t, t.TempDir(), "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// files writes a key's two files.
func files(t testing.TB, key crypto.Signer) (private, public string) {
	t.Helper()
	return certtest.KeyFiles(t, t.TempDir(), key)
}

func sign(t testing.TB, private string, artifact []byte) []byte {
	t.Helper()
	key, err := signature.ReadKey(private, func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	b, err := key.Sign(sha256.Sum256(artifact))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKey signs with keys of each type. A signature by another key is refused, as is an artifact that nobody has signed.
func TestKey(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, others := files(t, certtest.NewKey(t))
	for _, key := range []crypto.Signer{certtest.NewKey(t), ed, rsaKey} {
		private, public := files(t, key)
		trust := open(t, signature.Signer{Key: others}, signature.Signer{Key: public})
		b := sign(t, private, artifact)
		by, err := trust.Signature(b, artifact)
		if err != nil || by.Key != public {
			t.Errorf("%T: got %v, %v", key, by, err)
		}
		_, err = trust.Signature(b, []byte("another"))
		wants(t, err, "or not for this artifact")
		_, err = open(t, signature.Signer{Key: others}).Signature(b, artifact)
		wants(t, err, "it was not made with the key "+others)
		for _, artifact := range [][]byte{artifact, []byte("another")} {
			_, err := trust.Signature(sigstoretest.JSON(t, sigstoretest.KeyMessage(t, key, artifact)), artifact)
			wants(t, err, "")
		}
		_, err = trust.Signature(sigstoretest.JSON(t, sigstoretest.KeyMessage(t, key, []byte("another"))), artifact)
		wants(t, err, "or not for this artifact")
	}
	_, public := files(t, certtest.NewKey(t))
	s := sigstoretest.New(t)
	_, err = open(t, signature.Signer{Key: public}).Signature(sigstoretest.JSON(t, s.Message(subject, issuer, artifact)), artifact)
	wants(t, err, "with a certificate, not with the key")
	// A key and an identity each suffice.
	both := open(t, signature.Signer{Key: public}, signature.Signer{Issuer: issuer, Subject: subject, Root: s.Root(nil)})
	if by, err := both.Signature(sigstoretest.JSON(t, s.Message(subject, issuer, artifact)), artifact); err != nil || by.Subject != subject {
		t.Errorf("got %v, %v", by, err)
	}
	_, err = both.Signature(sigstoretest.JSON(t, s.Message("eve@example.com", issuer, artifact)), artifact)
	wants(t, err, "it was signed by somebody else")
}

// TestPrivateKeys reads keys in each form, and says what is wrong with others.
func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	key := certtest.NewKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := encrypted.Encrypt(der, []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, _ := files(t, p384)
	_, public := files(t, key)
	for _, c := range []struct{ path, password, want string }{
		{write(t, "PRIVATE KEY", der), "", ""},
		{write(t, "EC PRIVATE KEY", sec1), "", ""},
		{write(t, "ENCRYPTED SIGSTORE PRIVATE KEY", closed), "open sesame", ""},
		{write(t, "ENCRYPTED COSIGN PRIVATE KEY", closed), "open sesame", ""},
		{write(t, "ENCRYPTED SIGSTORE PRIVATE KEY", closed), "", "set COSIGN_PASSWORD to the right one"},
		{write(t, "ENCRYPTED PRIVATE KEY", closed), "", "not a private key"},
		{write(t, "PRIVATE KEY", []byte("x")), "", "damaged"},
		{testkit.Put(t, t.TempDir(), "key", "x"), "", "has no key"},
		{large, "", "use P-256"},
		{public, "", `has "PUBLIC KEY", not a private key`},
		{filepath.Join(t.TempDir(), "none"), "", "read the key"},
	} {
		_, err := signature.ReadKey(c.path, func() string { return c.password })
		wants(t, err, c.want)
	}
	private, large := files(t, p384)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err == nil {
		_, public := files(t, small)
		_, err := signature.Open([]signature.Signer{{Key: public}})
		wants(t, err, "an RSA key of 1024 bits")
	}
	for path, want := range map[string]string{private: "has no public key", large: "use P-256", write(t, "PUBLIC KEY", []byte("x")): "asn1"} {
		_, err := signature.Open([]signature.Signer{{Key: path}})
		wants(t, err, want)
	}
}

// TestSeveralKeys has files with more than one key: which of them counts would be anybody's guess, so none does.
func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	private, public := files(t, certtest.NewKey(t))
	otherPrivate, otherPublic := files(t, certtest.NewKey(t))
	read := func(path string) string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	damaged := "-----BEGIN PUBLIC KEY-----\nMFkw!\n-----END PUBLIC KEY-----\n"
	parameters := "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
	for name, c := range map[string]struct{ content, want string }{
		"one":                          {read(public), ""},
		"a key with words around it":   {"The key of acme:\n" + read(public) + "That is all.\n", ""},
		"two":                          {read(public) + read(otherPublic), "has more than one key"},
		"the same twice":               {read(public) + read(public), "has more than one key"},
		"two keys with words between":  {read(public) + "and\n" + read(otherPublic), "has more than one key"},
		"a damaged key before":         {damaged + read(public), "has more than one key"},
		"a damaged key after":          {read(public) + damaged, "has more than one key"},
		"a private key after":          {read(public) + read(otherPrivate), "has more than one key"},
		"the beginning of another key": {read(public) + "-----BEGIN PUBLIC KEY-----\n", "has more than one key"},
	} {
		_, err := signature.Open([]signature.Signer{{Key: testkit.Put(t, t.TempDir(), "key.pub", c.content)}})
		if (err == nil) != (c.want == "") {
			t.Errorf("%s: got %v", name, err)
		}
		wants(t, err, c.want)
	}
	for name, c := range map[string]struct{ content, want string }{
		"one":                            {read(private), ""},
		"a key with its parameters":      {parameters + read(private), ""},
		"parameters alone":               {parameters, "has no key"},
		"two":                            {read(private) + read(otherPrivate), "has more than one key"},
		"two keys with their parameters": {parameters + read(private) + parameters + read(otherPrivate), "has more than one key"},
		"the public key after":           {read(private) + read(public), "has more than one key"},
	} {
		_, err := signature.ReadKey(testkit.Put(t, t.TempDir(), "key", c.content), func() string { return "" })
		if (err == nil) != (c.want == "") {
			t.Errorf("private, %s: got %v", name, err)
		}
		wants(t, err, c.want)
	}
}

// TestSimple checks signatures in cosign's older format.
func TestSimple(t *testing.T) {
	t.Parallel()
	key := certtest.NewKey(t)
	_, public := files(t, key)
	trust := open(t, signature.Signer{Key: public})
	sum := sha256.Sum256(artifact)
	payload := func(digest, kind string) []byte {
		return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":%q},"type":%q},"optional":null}`, digest, kind)
	}
	right := payload(fmt.Sprintf("sha256:%x", sum), "cosign container image signature")
	for _, c := range []struct {
		payload []byte
		by      crypto.Signer
		want    string
	}{
		{right, key, ""},
		{right, certtest.NewKey(t), "it was made with none of the keys"},
		{payload("sha256:"+strings.Repeat("0", 64), "cosign container image signature"), key, "it is for another artifact"},
		{payload(fmt.Sprintf("sha256:%x", sum), "atomic container signature"), key, "it signs something else"},
		{[]byte("x"), key, "not in cosign's form"},
	} {
		hash := sha256.Sum256(c.payload)
		sig, err := c.by.Sign(rand.Reader, hash[:], crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		by, err := trust.Simple(c.payload, sig, artifact)
		if wants(t, err, c.want); err == nil && by.Key != public {
			t.Errorf("got %v", by)
		}
	}
	if s := sigstoretest.New(t); open(t, signature.Signer{Issuer: issuer, Subject: subject, Root: s.Root(nil)}).Keys() || !trust.Keys() {
		t.Error("Keys returns the wrong answer")
	}
}

// TestFingerprints checks that fingerprints differ if different signatures are valid.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	_, one := files(t, certtest.NewKey(t))
	_, two := files(t, certtest.NewKey(t))
	file := sigstoretest.New(t).Root(nil)
	seen := map[string]bool{}
	for _, signers := range [][]signature.Signer{
		{{Key: one}}, {{Key: two}}, {{Key: one}, {Key: two}}, {{Issuer: "a", Subject: "b", Root: file}}, {{Issuer: "ab", Subject: "c", Root: file}}, {{Issuer: "a", Subject: "bc", Root: file}},
		{{Issuer: "a", Subject: "b", Root: sigstoretest.New(t).Root(nil)}},
	} {
		f := open(t, signers...).Fingerprint()
		if seen[f] || f != open(t, signers...).Fingerprint() {
			t.Errorf("%v: got %s", signers, f)
		}
		seen[f] = true
	}
}

// FuzzBundle checks that garbage of any length is an error, and never a signature.
func FuzzBundle(f *testing.F) {
	private, public := files(f, certtest.NewKey(f))
	s := sigstoretest.New(f)
	trust := open(f, signature.Signer{Key: public}, signature.Signer{Issuer: issuer, Subject: subject, Root: s.Root(nil)})
	statement := sigstoretest.Statement(signature.PredicateType, artifact)
	f.Add(sigstoretest.JSON(f, s.Attest(subject, issuer, statement, time.Now().Add(time.Minute))))
	f.Add(sigstoretest.JSON(f, s.Message(subject, issuer, artifact)))
	f.Add(sign(f, private, artifact))
	for _, seed := range []string{
		"", "null", "{}", `{"mediaType":"` + signature.MediaType + `"}`,
		`{"mediaType":"` + signature.MediaType + `","verificationMaterial":{"publicKey":{}},"dsseEnvelope":{}}`,
		`{"mediaType":"` + signature.MediaType + `","verificationMaterial":{"publicKey":{}},"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{}]}}`,
		`{"mediaType":"` + signature.MediaType + `","verificationMaterial":{"certificate":{}},"messageSignature":{}}`,
		`{"mediaType":"` + signature.MediaType + `","verificationMaterial":{"certificate":{"rawBytes":"AAAA"},"tlogEntries":[{}]},"messageSignature":{"messageDigest":{},"signature":"AAAA"}}`,
		`{"mediaType":"` + signature.MediaType + `","verificationMaterial":{"x509CertificateChain":{"certificates":[{}]}},"messageSignature":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, bundle []byte) {
		_, _ = signature.Claims(bundle)
		if _, err := trust.Signature(bundle, []byte("what nobody has signed")); err == nil || len(err.Error()) > 2000 {
			t.Errorf("got %v", err)
		}
		sig, _ := base64.StdEncoding.DecodeString(string(bundle))
		if _, err := trust.Simple(bundle, sig, artifact); err == nil {
			t.Error("a payload of garbage is signed")
		}
	})
}

// TestClaims reads what a bundle says about itself.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := sigstoretest.New(t)
	b := sigstoretest.JSON(t, s.Attest(subject, issuer, sigstoretest.Statement("https://spdx.dev/Document", artifact), time.Now().Add(time.Minute)))
	if got, err := signature.Claims(b); err != nil || got.PredicateType != "https://spdx.dev/Document" {
		t.Errorf("got %v, %v", got, err)
	}
	trust := open(t, signature.Signer{Issuer: issuer, Subject: subject, Root: s.Root(nil)})
	if got, err := trust.Statement(b, artifact); err != nil || got.PredicateType != "https://spdx.dev/Document" || got.By.Subject != subject {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := trust.Signature(b, artifact); !errors.As(err, new(*signature.NoSignature)) {
		t.Errorf("got %v", err)
	}
}
