package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// need skips a test if a program is missing.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("there is no %s: make setup-registry installs it (%v)", program, err)
	}
}

// serve starts Debian's registry on a free port of loopback, and returns its name.
func serve(t *testing.T) string {
	t.Helper()
	need(t, "docker-registry")
	folder := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	settings := testkit.Put(t, folder, "registry.yml", fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", folder, host))
	var out bytes.Buffer
	cmd := exec.Command("docker-registry", "serve", settings)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Log(out.String())
		}
	})
	testkit.Until(t, "the registry answers", func() bool {
		answer, err := http.Get("http://" + host + "/v2/")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return host
}

// open opens a registry without credentials.
func open(t *testing.T, host string) *oci.Registry {
	t.Helper()
	r, err := oci.Open(host, oci.Options{Credentials: testkit.Put(t, t.TempDir(), "none.json", "{}")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// run runs a client in a folder, and returns its output.
func run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "HOME="+folder, "DOCKER_CONFIG="+folder)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// pull pulls a module.
func pull(t *testing.T, r *oci.Registry, ref oci.Reference) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := r.Pull(t.Context(), ref, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRegistry pushes to the real registry, and finds and pulls it there.
func TestRegistry(t *testing.T) {
	t.Parallel()
	host := serve(t)
	r, module := open(t, host), testkit.Fixture(t, "e2e/guest")
	ref := oci.Reference{Host: host, Repository: "acme/guest", Tag: "1.2.0"}
	pushed, err := r.Push(t.Context(), ref, "guest.wasm", module, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []oci.Reference{ref, ref.At(pushed.Manifest)} {
		if got := pull(t, r, ref); !bytes.Equal(got, module) {
			t.Errorf("%s: got %d bytes", ref, len(got))
		}
	}
	if digest, tag, err := r.Find(t.Context(), oci.Reference{Host: host, Repository: "acme/guest"}, "~1.2"); err != nil || digest != pushed.Manifest || tag != "1.2.0" {
		t.Errorf("got %s, %s, %v", digest, tag, err)
	}
	if names, err := r.Repositories(t.Context()); err != nil || strings.Join(names, " ") != "acme/guest" {
		t.Errorf("got %q, %v", names, err)
	}
	if _, err := r.Resolve(context.Background(), oci.Reference{Host: host, Repository: "acme/none", Tag: "1"}); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestCosign verifies signatures of cosign, in today's format and in the older one, and lets cosign verify ours.
func TestCosign(t *testing.T) {
	need(t, "cosign")
	host, folder := serve(t), t.TempDir()
	t.Setenv("COSIGN_PASSWORD", "open sesame")
	run(t, folder, "cosign", "generate-key-pair")
	key, err := signature.ReadKey(filepath.Join(folder, "cosign.key"), func() string { return "open sesame" })
	if err != nil {
		t.Fatal(err)
	}
	trust, err := signature.Open([]signature.Signer{{Key: filepath.Join(folder, "cosign.pub")}})
	if err != nil {
		t.Fatal(err)
	}
	trusting, err := oci.Open(host, oci.Options{Credentials: testkit.Put(t, t.TempDir(), "none.json", "{}"), Trust: trust})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trusting.Close)
	for name, form := range map[string]string{"ours": "", "theirs": "--new-bundle-format=true", "older": "--new-bundle-format=false"} {
		ref := oci.Reference{Host: host, Repository: "acme/" + name, Tag: "1"}
		pushed, err := open(t, host).Push(t.Context(), ref, "guest.wasm", append(testkit.Fixture(t, "e2e/guest"), 0, 1, 0), nil)
		if err != nil {
			t.Fatal(err)
		}
		at := host + "/acme/" + name + "@" + pushed.Manifest
		if _, err := trusting.Verify(t.Context(), ref); err == nil {
			t.Errorf("%s: got no error before the artifact was signed", name)
		}
		if form == "" {
			if _, err := open(t, host).Sign(t.Context(), ref, key); err != nil {
				t.Fatal(err)
			}
			run(t, folder, "cosign", "verify", "--key", "cosign.pub", "--insecure-ignore-tlog=true", "--allow-http-registry", at)
		} else {
			run(t, folder, "cosign", "sign", "--key", "cosign.key", "--yes", "--tlog-upload=false", "--use-signing-config=false", form, "--allow-http-registry", at)
		}
		if a, err := trusting.Verify(t.Context(), ref); err != nil || a.By.Key == "" {
			t.Errorf("%s: got %+v, %v", name, a, err)
		}
	}
}
