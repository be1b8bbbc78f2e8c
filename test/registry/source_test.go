package registry_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestSource pushes a module with its source. Clients pull the module as before, and oras finds the source.
func TestSource(t *testing.T) {
	t.Parallel()
	need(t, "oras")
	host, folder := serve(t), t.TempDir()
	r, module := open(t, host), testkit.Fixture(t, "e2e/guest")
	source := []oci.SourceFile{{Name: "a.py", Content: []byte("import parts.b\n")}, {Name: "parts/b.py", Content: []byte("# b\n")}}
	ref := oci.Reference{Host: host, Repository: "acme/script", Tag: "1"}
	pushed, err := r.PushWith(t.Context(), ref, "script.wasm", module, nil, oci.With{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	run(t, folder, "oras", "pull", "--plain-http", host+"/acme/script:1")
	if got := testkit.Read(t, folder, "script.wasm"); !bytes.Equal(got, module) {
		t.Errorf("oras has pulled %d bytes", len(got))
	}
	found := run(t, folder, "oras", "discover", "--plain-http", "--format", "json", "--artifact-type", "application/vnd.toolsrv.source.v1", host+"/acme/script:1")
	at := regexp.MustCompile(regexp.QuoteMeta(host)+`/acme/script@sha256:[0-9a-f]{64}`).FindAllString(found, -1)
	at = slices.DeleteFunc(at, func(s string) bool { return strings.HasSuffix(s, pushed.Manifest) })
	if len(at) != 1 {
		t.Fatalf("oras finds %q: %s", at, found)
	}
	run(t, folder, "oras", "pull", "--plain-http", at[0])
	run(t, folder, "tar", "-xf", "script-source.tar")
	for _, f := range source {
		if got := testkit.Read(t, folder, f.Name); !bytes.Equal(got, f.Content) {
			t.Errorf("%s: got %q", f.Name, got)
		}
	}
	// Signing again and again needs no right to delete earlier attachments.
	private := filepath.Join(folder, "acme.key")
	run(t, folder, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private)
	key, err := signature.ReadKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Sign(t.Context(), ref, key); err != nil {
			t.Error(err)
		}
	}
	files, _, err := r.Source(t.Context(), ref)
	if err != nil || len(files) != len(source) || !bytes.Equal(files[1].Content, source[1].Content) {
		t.Errorf("got %q, %v", files, err)
	}
}
