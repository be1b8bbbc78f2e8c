package command_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// pushTools pushes a module with a manifest to acme/shop.
func pushTools(t *testing.T, s *ocitest.Server, tag, manifest string) {
	t.Helper()
	file := testkit.Put(t, t.TempDir(), "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifest))
	if code, _, stderr := run("push", file, "oci://"+s.Host+"/acme/shop:"+tag); code != 0 {
		t.Fatal(stderr)
	}
}

// TestLockAndUpdate locks a range, pushes a newer version to the registry, shows what an update would change, and updates.
func TestLockAndUpdate(t *testing.T) {
	t.Parallel()
	s, folder := ocitest.Serve(t), t.TempDir()
	tool := func(name, description, more string) string {
		return fmt.Sprintf(`{"name":%q,"description":%q,"parameters":{"type":"object"}%s}`, name, description, more)
	}
	pushTools(t, s, "1.2.0", `{"abi":1,"namespace":"shop","tools":[`+tool("echo", "Echoes.", "")+","+tool("old", "Goes.", `,"needs":{"kv":true}`)+`]}`)
	toml := testkit.Put(t, folder, "toolsrv.toml", fmt.Sprintf("[[source]]\noci = \"%s/acme/shop\"\ntag = \"~1.2\"\n[[source]]\ndirectory = \"tools\"\n", s.Host))
	lock := filepath.Join(folder, "toolsrv.lock")
	if code, _, stderr := run("update", "--config", toml); code != 1 || !strings.Contains(stderr, "nothing is locked yet: run toolsrv lock") {
		t.Errorf("update: got %d, %s", code, stderr)
	}
	code, first, stderr := run("lock", "--config", toml)
	if code != 0 || !strings.HasPrefix(first, "oci://"+s.Host+"/acme/shop:~1.2  sha256:") || !strings.Contains(stderr, "Wrote "+lock) {
		t.Fatalf("lock: got %d, %q, %s", code, first, stderr)
	}
	if code, stdout, _ := run("update", "--dry-run", "--config", toml); code != 0 || stdout != "Nothing has changed since it was locked.\n" {
		t.Errorf("update: got %d, %q", code, stdout)
	}
	pushTools(t, s, "1.2.1", `{"abi":1,"namespace":"shop","needs":{"http":["https://api.example.com"]},"tools":[`+tool("echo", "Echoes, and more.", "")+","+tool("late", "Comes.", "")+`]}`)
	if code, again, stderr := run("lock", "--config", toml); code != 0 || again != first {
		t.Errorf("lock moves what is locked: got %d, %q, %s", code, again, stderr)
	}
	before := testkit.Read(t, lock)
	var shown string
	for _, dry := range []bool{true, false} {
		args, want := []string{"update", "--config", toml}, 0
		if dry {
			args, want = append(args, "--dry-run"), 3
		}
		code, stdout, stderr := run(args...)
		for _, line := range []string{"acme/shop:~1.2 is 1.2.1 now\n", "  tool    /shop/echo is changed: description\n", "  tool    /shop/late is added\n", "  tool    /shop/old is removed\n", "  need    http https://api.example.com is added\n", "  need    kv is removed\n"} {
			if !strings.Contains(stdout, line) {
				t.Errorf("%q: got %q, want %q", args, stdout, line)
			}
		}
		if code != want || !dry && stdout != shown {
			t.Errorf("%q: got %d, %q, %s", args, code, stdout, stderr)
		}
		shown = stdout
		if changed := string(testkit.Read(t, lock)) != string(before); changed == dry {
			t.Errorf("%q: the lock has changed: %t", args, changed)
		}
	}
	if code, stdout, _ := run("update", "--dry-run", "--config", toml, "--json"); code != 0 || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("update: got %d, %q", code, stdout)
	}
	// A damaged lock is an error: a server does not start without its contents.
	if err := os.WriteFile(lock, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lock", "update", "openapi"} {
		if code, _, stderr := run(name, "--config", toml); code != 1 || !strings.Contains(stderr, "toolsrv.lock is damaged: remove it") {
			t.Errorf("%s: got %d, %s", name, code, stderr)
		}
	}
	if code, _, stderr := run("lock", "--config", testkit.Put(t, t.TempDir(), "toolsrv.toml", "title = 'x'")); code != 1 || !strings.Contains(stderr, "has no registry source with a tag or a range") {
		t.Errorf("lock: got %d, %s", code, stderr)
	}
}

// TestMirrors pulls, locks and compares artifacts of a mirror, and never asks the mirror for a tag, since the mirror's tag is older.
func TestMirrors(t *testing.T) {
	t.Parallel()
	origin, mirror, folder := ocitest.Serve(t), ocitest.Serve(t), t.TempDir()
	file := func(version string) string {
		return fmt.Sprintf(`{"abi":1,"namespace":"shop","version":%q,"tools":[{"name":"echo","description":"Echoes.","parameters":{"type":"object"}}]}`, version)
	}
	key, public := keyPair(t)
	for _, s := range []*ocitest.Server{origin, mirror} {
		pushTools(t, s, "1.2.0", file("1.2.0"))
	}
	sign := func(s *ocitest.Server, tag string) {
		t.Helper()
		if code, _, stderr := run("sign", "oci://"+s.Host+"/acme/shop:"+tag, "--key", key); code != 0 {
			t.Fatal(stderr)
		}
	}
	sign(origin, "1.2.0")
	sign(mirror, "1.2.0")
	toml := testkit.Put(t, folder, "toolsrv.toml", fmt.Sprintf("[[source]]\noci = \"%s/acme/shop\"\ntag = \"~1.2\"\nmirrors = [\"%s/acme/shop\"]\n[[source.signer]]\nkey = %q\n", origin.Host, mirror.Host, public))
	var tags, fromOrigin, fromMirror atomic.Int64
	count := func(contents *atomic.Int64, asked *atomic.Int64) func(http.ResponseWriter, *http.Request) bool {
		return func(_ http.ResponseWriter, q *http.Request) bool {
			switch {
			case strings.Contains(q.URL.Path, "/tags/"), strings.Contains(q.URL.Path, "/manifests/1."):
				asked.Add(1)
			case q.Method == http.MethodGet:
				contents.Add(1)
			}
			return false
		}
	}
	var ofOrigin atomic.Int64
	watch := func() {
		origin.Before(count(&fromOrigin, &ofOrigin))
		mirror.Before(count(&fromMirror, &tags))
	}
	check := func(what string) {
		t.Helper()
		if tags.Load() > 0 || fromOrigin.Load() > 0 || fromMirror.Load() == 0 {
			t.Errorf("%s asks the mirror for %d tags and %d contents, and the origin for %d", what, tags.Load(), fromMirror.Load(), fromOrigin.Load())
		}
		fromMirror.Store(0)
	}
	watch()
	if code, _, stderr := run("lock", "--config", toml); code != 0 {
		t.Fatalf("lock: %s", stderr)
	}
	check("lock")
	to := filepath.Join(folder, "shop.wasm")
	code, reference, stderr := run("pull", "oci://"+origin.Host+"/acme/shop:1.2.0", "--mirror", mirror.Host+"/acme/shop", "--key", public, "-o", to)
	if code != 0 || !strings.HasPrefix(reference, "oci://"+origin.Host+"/acme/shop@sha256:") {
		t.Fatalf("pull: got %d, %q, %s", code, reference, stderr)
	}
	check("pull")
	pushTools(t, origin, "1.2.1", file("1.2.1"))
	pushTools(t, mirror, "1.2.1", file("1.2.1"))
	sign(origin, "1.2.1")
	sign(mirror, "1.2.1")
	for _, s := range []*atomic.Int64{&tags, &fromOrigin, &fromMirror} {
		s.Store(0)
	}
	if code, stdout, stderr := run("update", "--config", toml, "--dry-run"); code != 3 || !strings.Contains(stdout, "is 1.2.1 now") {
		t.Errorf("update: got %d, %q, %s", code, stdout, stderr)
	}
	check("update")
	// An artifact with a digest can be pulled while the origin is away; a tag can't be resolved.
	origin.Before(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true })
	if code, _, stderr := run("pull", strings.TrimSpace(reference), "--mirror", mirror.Host+"/acme/shop", "-o", to); code != 0 {
		t.Errorf("pull by a digest: got %d, %s", code, stderr)
	}
	if code, _, stderr := run("pull", "oci://"+origin.Host+"/acme/shop:1.2.0", "--mirror", mirror.Host+"/acme/shop", "-o", to); code != 1 || !strings.Contains(stderr, "does not allow it") {
		t.Errorf("pull by a tag: got %d, %s", code, stderr)
	}
	if code, _, stderr := run("pull", strings.TrimSpace(reference), "--mirror", mirror.Host+"/acme/shop:1.2.0"); code != 2 || !strings.Contains(stderr, "name only the repository") {
		t.Errorf("a mirror with a tag: got %d, %s", code, stderr)
	}
	for _, wrong := range []string{"", "Mirror.example.com/Shop", "mirror.example.com"} {
		if code, _, stderr := run("pull", strings.TrimSpace(reference), "--mirror", wrong); code != 2 || !strings.Contains(stderr, "name a repository: write one such as mirror.example.com/acme/csv,") {
			t.Errorf("the mirror %q: got %d, %s", wrong, code, stderr)
		}
	}
	// A mirror that sends wrong content is skipped, and a line says so.
	origin.Before(nil)
	mirror.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/") {
			_, _ = w.Write([]byte("another one"))
			return true
		}
		return false
	})
	passed := "The mirror " + mirror.Host + "/acme/shop was skipped: " + mirror.Host + "/acme/shop@sha256:"
	if code, _, stderr := run("pull", strings.TrimSpace(reference), "--mirror", mirror.Host+"/acme/shop", "-o", to); code != 0 || strings.Count(stderr, passed) != 1 {
		t.Errorf("pull with a mirror that lies: got %d, %s", code, stderr)
	}
	if code, stdout, stderr := run("update", "--config", toml, "--dry-run"); code != 3 || !strings.Contains(stdout, "is 1.2.1 now") || !strings.Contains(stderr, passed) {
		t.Errorf("update with a mirror that lies: got %d, %q, %s", code, stdout, stderr)
	}
}
