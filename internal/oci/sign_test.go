package oci_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
	"github.com/toolsrv/toolsrv/internal/testkit/sigstoretest"
)

// A pair is a signing key, and the trust in it.
type pair struct {
	*signature.Key
	signer crypto.Signer
	trust  *signature.Trust
}

func newPair(t *testing.T) pair {
	t.Helper()
	key := certtest.NewKey(t)
	private, public := certtest.KeyFiles(t, t.TempDir(), key)
	p := pair{signer: key}
	var err error
	if p.Key, err = signature.ReadKey(private, nil); err != nil {
		t.Fatal(err)
	}
	if p.trust, err = signature.Open([]signature.Signer{{Key: public}}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSigned pulls what an accepted signer has signed, and nothing else, from registries that can list referrers, and from others.
func TestSigned(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]*ocitest.Server{"with a list": ocitest.ServeReferrers(t), "without": ocitest.Serve(t)} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := newPair(t), newPair(t)
			trusting := open(t, at.Host, oci.Options{Trust: ours.trust})
			ref, pushed := pushed(t, at)
			got, _, err := pull(t, trusting, ref)
			wants(t, err, "it is not signed: the registry has no signature of "+pushed.Manifest)
			if len(got) > 0 {
				t.Errorf("got %q of a module that is not signed", got)
			}
			if _, err := open(t, at.Host, oci.Options{}).Sign(t.Context(), ref, theirs.Key); err != nil {
				t.Fatal(err)
			}
			_, _, err = pull(t, trusting, ref)
			wants(t, err, "its signature is not valid: it was not made with the key ")
			if digest, err := open(t, at.Host, oci.Options{}).Sign(t.Context(), ref, ours.Key); err != nil || digest != pushed.Manifest {
				t.Fatal(digest, err)
			}
			got, a, err := pull(t, trusting, ref)
			if err != nil || !bytes.Equal(got, module) || a.By.Key == "" {
				t.Errorf("got %q, %+v, %v", got, a, err)
			}
			if a, err := trusting.Verify(t.Context(), ref.At(pushed.Manifest)); err != nil || a.By.Key == "" || a.Manifest != pushed.Manifest {
				t.Errorf("got %+v, %v", a, err)
			}
			// A signature is for one artifact. If the tag is moved to another artifact, the other artifact is not signed.
			again := put(t, at, "acme/csv", "1.2", nil, layer{"application/wasm", []byte("another")})
			_, _, err = pull(t, trusting, ref)
			wants(t, err, "it is not signed: the registry has no signature of "+again)
			all, err := trusting.Attestations(t.Context(), ref.At(pushed.Manifest), ours.trust)
			if err != nil || len(all) != 2 || (all[0].Wrong == nil) == (all[1].Wrong == nil) {
				t.Errorf("got %+v, %v", all, err)
			}
		})
	}
}

// TestPushSigned signs before anybody can find the artifact by its tag.
func TestPushSigned(t *testing.T) {
	t.Parallel()
	at, ours := ocitest.Serve(t), newPair(t)
	ref := reference(t, at.Host, "acme/csv:1.2")
	tagged := false
	at.Before(func(_ http.ResponseWriter, q *http.Request) bool {
		switch {
		case q.Method == http.MethodPut && strings.HasSuffix(q.URL.Path, "/manifests/1.2"):
			tagged = true
		case q.Method == http.MethodPut && strings.Contains(q.URL.Path, "/manifests/") && tagged:
			t.Errorf("%s comes after the tag", q.URL.Path)
		}
		return false
	})
	if _, err := open(t, at.Host, oci.Options{}).PushWith(t.Context(), ref, "csv.wasm", module, nil, oci.With{Key: ours.Key}); err != nil || !tagged {
		t.Fatal(err, tagged)
	}
	_, _, err := pull(t, open(t, at.Host, oci.Options{Trust: ours.trust}), ref)
	wants(t, err, "")
}

// attach attaches a bundle to the artifact with a digest as other clients do, without annotations.
func attach(t *testing.T, at *ocitest.Server, of string, bundle []byte, change func(*ocispec.Manifest)) string {
	t.Helper()
	return put(t, at, "acme/csv", "x", func(m *ocispec.Manifest) {
		m.ArtifactType, m.Config.MediaType = signature.MediaType, ocispec.MediaTypeEmptyJSON
		m.Subject = &ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(of), Size: 1}
		if change != nil {
			change(m)
		}
	}, layer{signature.MediaType, bundle})
}

// TestHostileSignatures refuses signatures that a registry, or somebody who may push to it, has tampered with.
func TestHostileSignatures(t *testing.T) {
	t.Parallel()
	ours := newPair(t)
	for name, c := range map[string]struct {
		attached func(t *testing.T, at *ocitest.Server, of string)
		want     string
	}{
		"garbage": {func(t *testing.T, at *ocitest.Server, of string) { attach(t, at, of, []byte("\x00garbage"), nil) }, "it is not a bundle in Sigstore's form"},
		"10 GB": {func(t *testing.T, at *ocitest.Server, of string) {
			attach(t, at, of, []byte("{}"), func(m *ocispec.Manifest) { m.Layers[0].Size = 10 << 30 })
		}, "it has 10737418240 bytes; the limit is 262144"},
		"10 GB that arrive": {func(t *testing.T, at *ocitest.Server, of string) {
			attach(t, at, of, []byte("{}"), func(m *ocispec.Manifest) { m.Layers[0].Digest = digest.FromString("endless") })
			at.Before(func(w http.ResponseWriter, q *http.Request) bool {
				if strings.HasSuffix(q.URL.Path, "/blobs/"+digest.FromString("endless").String()) {
					endless(w)
					return true
				}
				return false
			})
		}, "has more than the 2 bytes that its manifest says"},
		"a bundle with another content": {func(t *testing.T, at *ocitest.Server, of string) {
			attach(t, at, of, []byte("{}"), func(m *ocispec.Manifest) { m.Layers[0].Digest = digest.FromString("else") })
			at.Before(func(w http.ResponseWriter, q *http.Request) bool {
				if strings.HasSuffix(q.URL.Path, "/blobs/"+digest.FromString("else").String()) {
					w.Header().Set("Content-Length", "2")
					_, _ = w.Write([]byte("{}"))
					return true
				}
				return false
			})
		}, "doesn't match its digest"},
		"no bundle": {func(t *testing.T, at *ocitest.Server, of string) {
			attach(t, at, of, []byte("{}"), func(m *ocispec.Manifest) { m.Layers = nil })
		}, "it has no bundle"},
		"two bundles": {func(t *testing.T, at *ocitest.Server, of string) {
			attach(t, at, of, []byte("{}"), func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) })
		}, "it has no bundle"},
		"of another digest": {func(t *testing.T, at *ocitest.Server, of string) {
			b, err := ours.Sign(sha256.Sum256([]byte("another")))
			if err != nil {
				t.Fatal(err)
			}
			attach(t, at, of, b, nil)
		}, "or not for this artifact"},
		"many": {func(t *testing.T, at *ocitest.Server, of string) {
			for i := range 60 {
				attach(t, at, of, fmt.Append(nil, i), nil)
			}
		}, "it has 60 signatures and attestations, of which only the first 50 are checked"},
		"thousands": {func(t *testing.T, at *ocitest.Server, of string) {
			list(at, func(w http.ResponseWriter, n int) { write(w, 1000, n+1) })
		}, "more than 1000 artifacts refer to it"},
		"a list without end": {func(t *testing.T, at *ocitest.Server, of string) {
			list(at, func(w http.ResponseWriter, n int) { write(w, 0, n+1) })
		}, "exceeded 100 pages"},
		"a page of 10 GB": {func(t *testing.T, at *ocitest.Server, of string) {
			list(at, func(w http.ResponseWriter, _ int) {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
				_, _ = io.WriteString(w, `{"manifests":[`)
				endless(w)
			})
		}, "its signatures: "},
		"a list that is hidden": {func(t *testing.T, at *ocitest.Server, of string) {
			if _, err := open(t, at.Host, oci.Options{}).Sign(t.Context(), reference(t, at.Host, "acme/csv:1.2"), ours.Key); err != nil {
				t.Fatal(err)
			}
			list(at, func(w http.ResponseWriter, _ int) { write(w, 0, 0) })
		}, "it is not signed"},
		"a list that fails": {func(t *testing.T, at *ocitest.Server, of string) {
			list(at, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusInternalServerError) })
		}, "500"},
		"an attestation alone": {func(t *testing.T, at *ocitest.Server, of string) {
			attach(t, at, of, []byte("{}"), func(m *ocispec.Manifest) { m.ArtifactType = "application/spdx+json" })
		}, "it is not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := ocitest.ServeReferrers(t)
			ref, pushed := pushed(t, at)
			c.attached(t, at, pushed.Manifest)
			got, _, err := pull(t, open(t, at.Host, oci.Options{Trust: ours.trust}), ref)
			wants(t, err, c.want)
			if len(got) > 0 {
				t.Errorf("got %q", got)
			}
		})
	}
}

// list makes a registry answer with a page of an artifact's referrers.
func list(at *ocitest.Server, page func(w http.ResponseWriter, n int)) {
	n := 0
	at.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.Contains(q.URL.Path, "/referrers/") {
			return false
		}
		page(w, n)
		n++
		return true
	})
}

// write writes a page of a list, with a link to the page next unless that is 0.
func write(w http.ResponseWriter, count, next int) {
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
	for i := range count {
		index.Manifests = append(index.Manifests, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: signature.MediaType, Digest: digest.FromString(fmt.Sprint(next, i)), Size: 2})
	}
	w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	if next > 0 {
		w.Header().Set("Link", fmt.Sprintf(`</v2/acme/csv/referrers/%s?page=%d>; rel="next"`, digest.FromString("x"), next))
	}
	_ = json.NewEncoder(w).Encode(index)
}

func endless(w io.Writer) {
	page := bytes.Repeat([]byte(" "), 1<<20)
	for range 10 << 10 {
		if _, err := w.Write(page); err != nil {
			return
		}
	}
}

// TestBuried finds a signature, which is marked as such, among statements of other kinds.
func TestBuried(t *testing.T) {
	t.Parallel()
	at, ours := ocitest.ServeReferrers(t), newPair(t)
	ref, pushed := pushed(t, at)
	for i := range 60 {
		attach(t, at, pushed.Manifest, fmt.Append(nil, i), nil)
	}
	if _, err := open(t, at.Host, oci.Options{}).Sign(t.Context(), ref, ours.Key); err != nil {
		t.Fatal(err)
	}
	_, _, err := pull(t, open(t, at.Host, oci.Options{Trust: ours.trust}), ref)
	wants(t, err, "")
}

// TestMinimum refuses versions that are too old, however well they are signed.
func TestMinimum(t *testing.T) {
	t.Parallel()
	at, ours := ocitest.Serve(t), newPair(t)
	ref := reference(t, at.Host, "acme/csv:1.2")
	for version, want := range map[string]string{
		"1.2.0": "", "1.10.0": "", "2": "", "1.1.9": "it is version 1.1.9, and the minimum is 1.2.0", "": "it has no version", "1.3.0-rc.1": "it has no version", "new": "it has no version",
	} {
		a := map[string]string{"org.opencontainers.image.version": version}
		if _, err := open(t, at.Host, oci.Options{}).PushWith(t.Context(), ref, "csv.wasm", module, a, oci.With{Key: ours.Key}); err != nil {
			t.Fatal(err)
		}
		got, _, err := pull(t, open(t, at.Host, oci.Options{Trust: ours.trust, Minimum: "1.2.0"}), ref)
		wants(t, err, want)
		if (len(got) > 0) != (want == "") {
			t.Errorf("version %s: got %q", version, got)
		}
	}
}

// TestOlderSignatures accepts the signature tags that cosign made before registries could list referrers.
func TestOlderSignatures(t *testing.T) {
	t.Parallel()
	at, ours, theirs := ocitest.Serve(t), newPair(t), newPair(t)
	ref, pushed := pushed(t, at)
	tag := strings.Replace(pushed.Manifest, ":", "-", 1) + ".sig"
	older := func(of string, by crypto.Signer, change func(*ocispec.Manifest)) {
		payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, of)
		sum := sha256.Sum256(payload)
		sig, err := by.Sign(rand.Reader, sum[:], crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		put(t, at, "acme/csv", tag, func(m *ocispec.Manifest) {
			m.Layers[0].Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig)}
			if change != nil {
				change(m)
			}
		}, layer{"application/vnd.dev.cosign.simplesigning.v1+json", payload})
	}
	trusting := open(t, at.Host, oci.Options{Trust: ours.trust})
	for _, c := range []struct {
		of     string
		by     crypto.Signer
		change func(*ocispec.Manifest)
		want   string
	}{
		{pushed.Manifest, theirs.signer, nil, "it was made with none of the keys"},
		{digest.FromString("another").String(), ours.signer, nil, "it is for another artifact"},
		{pushed.Manifest, ours.signer, func(m *ocispec.Manifest) { m.Layers[0].Annotations = nil }, "it was made with none of the keys"},
		{pushed.Manifest, ours.signer, func(m *ocispec.Manifest) {
			m.Layers[0].Annotations["dev.cosignproject.cosign/signature"] = "%"
		}, "not in base64"},
		{pushed.Manifest, ours.signer, func(m *ocispec.Manifest) { m.Layers[0].Size = 10 << 30 }, "10737418240 bytes; the limit is 65536"},
		{pushed.Manifest, ours.signer, func(m *ocispec.Manifest) { m.Layers[0].MediaType = "text/plain" }, "it is not signed"},
		{pushed.Manifest, ours.signer, func(m *ocispec.Manifest) {
			one := m.Layers[0]
			one.Annotations = nil
			for range 60 {
				m.Layers = append([]ocispec.Descriptor{one}, m.Layers...)
			}
		}, "it has 61 signatures in cosign's older form"},
		{pushed.Manifest, ours.signer, nil, ""},
	} {
		older(c.of, c.by, c.change)
		_, _, err := pull(t, trusting, ref)
		wants(t, err, c.want)
	}
	// These older signatures are not accepted if the trusted signer is an identity.
	s := sigstoretest.New(t)
	trust, err := signature.Open([]signature.Signer{{Issuer: "https://example.com", Subject: "ann@example.com", Root: s.Root(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = pull(t, open(t, at.Host, oci.Options{Trust: trust}), ref)
	wants(t, err, "it is not signed")
}

// TestKeyless pulls an artifact that an identity has signed, and lists other statements about the artifact.
func TestKeyless(t *testing.T) {
	t.Parallel()
	at, s := ocitest.ServeReferrers(t), sigstoretest.New(t)
	ref, pushed := pushed(t, at)
	answer, err := http.Get(at.URL + "/v2/acme/csv/manifests/" + pushed.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	manifest, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := signature.Open([]signature.Signer{{Issuer: "https://example.com", Subject: "ann@example.com", Root: s.Root(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	trusting := open(t, at.Host, oci.Options{Trust: trust})
	const provenance = "https://slsa.dev/provenance/v1"
	attest := func(kind string) {
		attach(t, at, pushed.Manifest, sigstoretest.JSON(t, s.Attest("ann@example.com", "https://example.com", sigstoretest.Statement(kind, manifest), time.Now().Add(time.Minute))), nil)
	}
	attest(provenance)
	_, _, err = pull(t, trusting, ref)
	wants(t, err, "it is not a signature, but an attestation of the type "+provenance)
	attest(signature.PredicateType)
	got, a, err := pull(t, trusting, ref)
	if err != nil || !bytes.Equal(got, module) || a.By.Subject != "ann@example.com" || a.By.Time.IsZero() {
		t.Errorf("got %q, %+v, %v", got, a, err)
	}
	for name, trust := range map[string]*signature.Trust{"verified": trust, "claimed": nil} {
		all, err := trusting.Attestations(t.Context(), ref, trust)
		kinds := map[string]bool{}
		for _, a := range all {
			if kinds[a.PredicateType] = true; a.Wrong != nil || (a.By.Subject != "") != (name == "verified") {
				t.Errorf("%s: got %+v", name, a)
			}
		}
		if err != nil || !kinds[provenance] || !kinds[signature.PredicateType] {
			t.Errorf("%s: got %+v, %v", name, all, err)
		}
	}
}
