package core_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// push pushes a module, and returns its artifact.
func push(t *testing.T, at *ocitest.Server, repository, tag string, module []byte) *oci.Artifact {
	t.Helper()
	r, err := oci.Open(at.Host, oci.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a, err := r.Push(t.Context(), oci.Reference{Host: at.Host, Repository: repository, Tag: tag}, "x.wasm", module, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRegistrySource serves a directory and two modules of a registry: the tag of one moves, and one is outside its source's namespaces. The service
// starts again while the registry is unreachable.
func TestRegistrySource(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	c, directories := sources(t, "one")
	testkit.Put(t, directories[0], "a.wasm", guest(t, "own", "echo"))
	push(t, at, "acme/shop", "1.2.0", guest(t, "shop", "echo"))
	bank := push(t, at, "acme/bank", "1", guest(t, "bank", "echo"))
	push(t, at, "acme/evil", "1", guest(t, "bank", "steal"))
	c.Sources = append(c.Sources,
		config.Source{OCI: at.Host + "/acme/shop", Tag: "~1.2", Prefix: "acme"},
		config.Source{OCI: at.Host + "/acme/bank", Tag: bank.Manifest, Name: "bank", Namespaces: []string{"bank"}},
		config.Source{OCI: at.Host + "/acme/evil", Tag: "1", Name: "evil"})
	s := open(t, c, core.Options{})
	await(t, s, "/acme/shop/echo", "/bank/echo", "/own/echo")
	if got := call(t, s, "/acme/shop/echo", `{"a":1}`); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
	var refused []wasmtools.Refusal
	testkit.Until(t, "a file is refused", func() bool { refused = s.Table.Current().Refused(); return len(refused) > 0 })
	if len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), "which only the source bank may serve") || !strings.HasPrefix(refused[0].Source, "oci://"+at.Host+"/acme/evil:1") {
		t.Errorf("refused are %+v", refused)
	}
	if d := s.Directories(); len(d) != 1 || d[0].Path != directories[0] {
		t.Errorf("the directories are %+v", d)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	at.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	testkit.Put(t, directories[0], "b.wasm", guest(t, "own", "late"))
	s = open(t, c, core.Options{})
	await(t, s, "/acme/shop/echo", "/bank/echo", "/own/echo", "/own/late")
	if files, err := filepath.Glob(filepath.Join(c.Tools.CacheDir, "registry", "*.wasm")); err != nil || len(files) != 3 {
		t.Errorf("the cache has %q, %v", files, err)
	}
}

// TestLocked serves the locked version of a tag, whatever the tag refers to now.
func TestLocked(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	first := push(t, at, "acme/shop", "1", guest(t, "shop", "first"))
	push(t, at, "acme/shop", "1", guest(t, "shop", "second"))
	folder := t.TempDir()
	file := testkit.Put(t, folder, "toolsrv.toml", "[tools]\ncache_directory = 'cache'\n[[source]]\noci = '"+at.Host+"/acme/shop'\ntag = '1'\n")
	testkit.Put(t, folder, "toolsrv.lock", `{"version": 1, "sources": [{"oci": "`+at.Host+`/acme/shop", "tag": "1", "digest": "`+first.Manifest+`"}]}`)
	for _, want := range []string{"/shop/first", "/shop/second"} {
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, c, core.Options{})
		await(t, s, want)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if want == "/shop/first" {
			if err := os.Remove(filepath.Join(folder, "toolsrv.lock")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMirrors serves a locked version from a mirror while the registry is unreachable.
func TestMirrors(t *testing.T) {
	t.Parallel()
	origin, mirror := ocitest.Serve(t), ocitest.Serve(t)
	first := push(t, mirror, "copies/shop", "1", guest(t, "shop", "first"))
	origin.Close()
	folder := t.TempDir()
	file := testkit.Put(t, folder, "toolsrv.toml", "[tools]\ncache_directory = 'cache'\n[[source]]\noci = '"+origin.Host+"/acme/shop'\nmirrors = ['"+mirror.Host+"/copies/shop']\ntag = '1'\n")
	testkit.Put(t, folder, "toolsrv.lock", `{"version": 1, "sources": [{"oci": "`+origin.Host+`/acme/shop", "tag": "1", "digest": "`+first.Manifest+`"}]}`)
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, c, core.Options{})
	await(t, s, "/shop/first")
}

// TestReloadLock serves the newly locked version after a reload, and refuses a reload with an unreadable key.
func TestReloadLock(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	first := push(t, at, "acme/shop", "1", guest(t, "shop", "first"))
	second := push(t, at, "acme/shop", "1", guest(t, "shop", "second"))
	folder := t.TempDir()
	text := "[tools]\ncache_directory = 'cache'\n[[source]]\noci = '" + at.Host + "/acme/shop'\ntag = '1'\n"
	file := testkit.Put(t, folder, "toolsrv.toml", text)
	load := func(locked string) *config.Config {
		testkit.Put(t, folder, "toolsrv.lock", `{"version": 1, "sources": [{"oci": "`+at.Host+`/acme/shop", "tag": "1", "digest": "`+locked+`"}]}`)
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := open(t, load(first.Manifest), core.Options{})
	await(t, s, "/shop/first")
	if err := s.Reload(load(second.Manifest)); err != nil {
		t.Fatal(err)
	}
	await(t, s, "/shop/second")
	testkit.Put(t, folder, "toolsrv.toml", text+"[[source.signer]]\nkey = 'none.pub'\n")
	if err := s.Reload(load(first.Manifest)); err == nil || !strings.Contains(err.Error(), "apply the sources: ") || !strings.Contains(err.Error(), "none.pub") {
		t.Errorf("got %v", err)
	}
	testkit.Put(t, folder, "toolsrv.toml", text)
	if err := s.Reload(load(first.Manifest)); err != nil {
		t.Fatal(err)
	}
	await(t, s, "/shop/first")
}
