// Package sigstoretest has Sigstore authorities for tests, and makes bundles that they have signed.
package sigstoretest

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	bundles "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
)

// A Sigstore issues certificates and timestamps, and keeps a log.
type Sigstore struct {
	t testing.TB
	*ca.VirtualSigstore
}

// New starts one.
func New(t testing.TB) *Sigstore {
	t.Helper()
	s, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return &Sigstore{t, s}
}

// Root writes the trusted root of the Sigstore to a file, and returns the path. If change is not nil, it can change the root's parts first.
func (s *Sigstore) Root(change func(authorities *[]root.CertificateAuthority, clocks *[]root.TimestampingAuthority, logs map[string]*root.TransparencyLog)) string {
	s.t.Helper()
	authorities, clocks, logs := s.FulcioCertificateAuthorities(), s.TimestampingAuthorities(), s.RekorLogs()
	for id, log := range logs {
		log.ID, _ = hex.DecodeString(id) // the library leaves the ID out
	}
	if change != nil {
		change(&authorities, &clocks, logs)
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, nil, clocks, logs)
	if err != nil {
		s.t.Fatal(err)
	}
	content, err := trusted.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.t.TempDir(), "trusted_root.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Statement returns a statement of the given type about an artifact.
func Statement(predicateType string, artifact []byte) []byte {
	sum := sha256.Sum256(artifact)
	content, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType, "predicate": map[string]any{},
		"subject": []any{map[string]any{"digest": map[string]any{"sha256": hex.EncodeToString(sum[:])}}},
	})
	if err != nil {
		panic(err)
	}
	return content
}

// Attest returns a bundle with a statement that an identity has signed. The log has an entry for it, made at the given time.
func (s *Sigstore) Attest(subject, issuer string, statement []byte, at time.Time) *bundles.Bundle {
	s.t.Helper()
	e, err := s.AttestAtTime(subject, issuer, statement, at, true)
	if err != nil {
		s.t.Fatal(err)
	}
	b := s.bundle(e)
	content, err := e.SignatureContent()
	if err != nil {
		s.t.Fatal(err)
	}
	raw := content.EnvelopeContent().RawEnvelope()
	b.Content = &bundles.Bundle_DsseEnvelope{DsseEnvelope: &dsse.Envelope{
		Payload: statement, PayloadType: raw.PayloadType, Signatures: []*dsse.Signature{{Sig: content.Signature()}},
	}}
	return b
}

// Message returns a bundle in which an identity has signed an artifact itself.
func (s *Sigstore) Message(subject, issuer string, artifact []byte) *bundles.Bundle {
	s.t.Helper()
	e, err := s.Sign(subject, issuer, artifact)
	if err != nil {
		s.t.Fatal(err)
	}
	b := s.bundle(e)
	content, err := e.SignatureContent()
	if err != nil {
		s.t.Fatal(err)
	}
	b.Content = message(artifact, content.Signature())
	for _, entry := range b.VerificationMaterial.TlogEntries {
		proof, err := s.GetInclusionProof(entry.CanonicalizedBody)
		if err != nil {
			s.t.Fatal(err)
		}
		top, err := hex.DecodeString(*proof.RootHash)
		if err != nil {
			s.t.Fatal(err)
		}
		entry.InclusionProof = &rekor.InclusionProof{LogIndex: *proof.LogIndex, RootHash: top, TreeSize: *proof.TreeSize, Checkpoint: &rekor.Checkpoint{Envelope: *proof.Checkpoint}}
	}
	return b
}

func message(artifact, sig []byte) *bundles.Bundle_MessageSignature {
	sum := sha256.Sum256(artifact)
	return &bundles.Bundle_MessageSignature{MessageSignature: &common.MessageSignature{
		MessageDigest: &common.HashOutput{Algorithm: common.HashAlgorithm_SHA2_256, Digest: sum[:]}, Signature: sig,
	}}
}

// KeyMessage returns a bundle in which a key has signed an artifact itself.
func KeyMessage(t testing.TB, key crypto.PrivateKey, artifact []byte) *bundles.Bundle {
	t.Helper()
	signer, err := signature.LoadSigner(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := signer.SignMessage(bytes.NewReader(artifact))
	if err != nil {
		t.Fatal(err)
	}
	return &bundles.Bundle{
		MediaType:            mediaType,
		VerificationMaterial: &bundles.VerificationMaterial{Content: &bundles.VerificationMaterial_PublicKey{PublicKey: &common.PublicKeyIdentifier{Hint: "some"}}},
		Content:              message(artifact, sig),
	}
}

const mediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// bundle returns a bundle without its content and signature.
func (s *Sigstore) bundle(e verify.SignedEntity) *bundles.Bundle {
	s.t.Helper()
	content, err := e.VerificationContent()
	if err != nil {
		s.t.Fatal(err)
	}
	stamps, err := e.Timestamps()
	if err != nil {
		s.t.Fatal(err)
	}
	entries, err := e.TlogEntries()
	if err != nil {
		s.t.Fatal(err)
	}
	m := &bundles.VerificationMaterial{
		Content:                   &bundles.VerificationMaterial_Certificate{Certificate: &common.X509Certificate{RawBytes: content.Certificate().Raw}},
		TimestampVerificationData: &bundles.TimestampVerificationData{},
	}
	for _, stamp := range stamps {
		m.TimestampVerificationData.Rfc3161Timestamps = append(m.TimestampVerificationData.Rfc3161Timestamps, &common.RFC3161SignedTimestamp{SignedTimestamp: stamp})
	}
	for _, entry := range entries {
		m.TlogEntries = append(m.TlogEntries, s.whole(entry.TransparencyLogEntry()))
	}
	return &bundles.Bundle{MediaType: mediaType, VerificationMaterial: m}
}

// whole adds the parts of a log entry that the library keeps private.
func (s *Sigstore) whole(entry *rekor.TransparencyLogEntry) *rekor.TransparencyLogEntry {
	s.t.Helper()
	var body struct{ Kind, APIVersion string }
	if err := json.Unmarshal(entry.CanonicalizedBody, &body); err != nil {
		s.t.Fatal(err)
	}
	promise, err := s.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.CanonicalizedBody), IntegratedTime: entry.IntegratedTime, LogIndex: entry.LogIndex, LogID: hex.EncodeToString(entry.LogId.KeyId),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	entry.KindVersion = &rekor.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	entry.InclusionPromise = &rekor.InclusionPromise{SignedEntryTimestamp: promise}
	return entry
}

// JSON returns a bundle in the form in which it is sent.
func JSON(t testing.TB, b *bundles.Bundle) []byte {
	t.Helper()
	content, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
