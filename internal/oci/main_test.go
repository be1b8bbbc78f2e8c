package oci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
)

func TestMain(m *testing.M) { testkit.Main(m, "internal/oci.") }

// module is the pushed content, which need not be a valid module.
var module = []byte("\x00asm\x01\x00\x00\x00 and so on")

// open opens a registry, with only the credentials of the options.
func open(t *testing.T, host string, o oci.Options) *oci.Registry {
	t.Helper()
	if o.Credentials == "" {
		o.Credentials = testkit.Put(t, t.TempDir(), "none.json", "{}")
	}
	r, err := oci.Open(host, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// reference returns a reference of a server's registry.
func reference(t *testing.T, host, rest string) oci.Reference {
	t.Helper()
	ref, err := oci.ParseReference(host + "/" + rest)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// pull pulls an artifact, and returns its module.
func pull(t *testing.T, r *oci.Registry, ref oci.Reference) ([]byte, *oci.Artifact, error) {
	t.Helper()
	var b bytes.Buffer
	a, err := r.Pull(t.Context(), ref, &b)
	return b.Bytes(), a, err
}

// pushed pushes the module to acme/csv:1.2, and returns the artifact with its reference.
func pushed(t *testing.T, s *ocitest.Server) (oci.Reference, *oci.Artifact) {
	t.Helper()
	ref := reference(t, s.Host, "acme/csv:1.2")
	a, err := open(t, s.Host, oci.Options{}).Push(t.Context(), ref, "csv.wasm", module, map[string]string{"org.opencontainers.image.title": "csv"})
	if err != nil {
		t.Fatal(err)
	}
	return ref, a
}

// A layer is a layer of an artifact that a test makes.
type layer struct {
	mediaType string
	content   []byte
}

// put pushes an artifact of layers as other clients do, with changes to its manifest, and returns the manifest's digest.
func put(t *testing.T, s *ocitest.Server, repository, tag string, change func(*ocispec.Manifest), layers ...layer) string {
	t.Helper()
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	blob := func(content []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
		do(t, http.MethodPost, s.URL+"/v2/"+repository+"/blobs/uploads/?digest="+url.QueryEscape(d.Digest.String()), "application/octet-stream", content)
		return d
	}
	m.Config = blob([]byte("{}"))
	m.Config.MediaType = "application/vnd.wasm.config.v0+json"
	for _, l := range layers {
		d := blob(l.content)
		d.MediaType = l.mediaType
		m.Layers = append(m.Layers, d)
	}
	if change != nil {
		change(&m)
	}
	return putJSON(t, s, repository, tag, m.MediaType, m)
}

// putJSON puts a manifest.
func putJSON(t *testing.T, s *ocitest.Server, repository, tag, mediaType string, v any) string {
	t.Helper()
	content, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	do(t, http.MethodPut, s.URL+"/v2/"+repository+"/manifests/"+tag, mediaType, content)
	return digest.FromBytes(content).String()
}

func do(t *testing.T, method, target, mediaType string, content []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, target, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", mediaType)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, target, answer.Status)
	}
}

// hosts is a network that gives each name an address, and connects to a real address instead.
type hosts struct {
	names  map[string]string // to addresses
	behind map[string]string // maps an address with its port to the real one
	proxy  string
}

func (h hosts) Lookup(_ context.Context, name string) ([]netip.Addr, error) {
	if a, ok := h.names[name]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (h hosts) Dial(ctx context.Context, address string) (net.Conn, error) {
	if to, ok := h.behind[address]; ok {
		address = to
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func (hosts) Interfaces() ([]netip.Prefix, error) {
	return []netip.Prefix{netip.MustParsePrefix("8.8.8.7/24")}, nil
}

func (h hosts) Proxy(*http.Request) (*url.URL, error) {
	if h.proxy == "" {
		return nil, nil
	}
	return url.Parse(h.proxy)
}

// wants reports whether an error contains a text, or is nil if the text is empty.
func wants(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want %q", err, want)
	}
}
