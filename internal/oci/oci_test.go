package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
)

func credentialsFile(t *testing.T, host, user, password string) string {
	t.Helper()
	return testkit.Put(t, t.TempDir(), "config.json", fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password))))
}

func authorityFile(t *testing.T, s *ocitest.Server) string {
	t.Helper()
	return testkit.Put(t, t.TempDir(), "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestReference(t *testing.T) {
	t.Parallel()
	sum := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"oci://ghcr.io/acme/csv:1.2.0":      "ghcr.io acme/csv 1.2.0 ",
		"ghcr.io/acme/csv":                  "ghcr.io acme/csv  ",
		"oci://localhost:5000/csv@" + sum:   "localhost:5000 csv  " + sum,
		"oci://localhost:5000/csv:1@" + sum: "localhost:5000 csv  " + sum,
		"oci://[::1]:5000/csv:1":            "[::1]:5000 csv 1 ",
		"":                                  "",
		"oci://":                            "",
		"csv":                               "",
		"oci://ghcr.io":                     "",
		"oci://ghcr.io/":                    "",
		"oci://ghcr.io/Acme/csv:1":          "",
		"oci://ghcr.io/acme/../csv:1":       "",
		"oci://ghcr.io/acme//csv:1":         "",
		"oci://ghcr.io/acme/csv:1 2":        "",
		"oci://ghcr.io/acme/csv:-1":         "",
		"oci://ghcr.io/acme/csv:" + strings.Repeat("1", 129):        "",
		"oci://ghcr.io/acme/csv@sha256:abc":                         "",
		"oci://ghcr.io/acme/csv@" + strings.ToUpper(sum):            "",
		"oci://ghcr.io/acme/csv@sha512:" + strings.Repeat("0a", 64): "",
		"oci://user:password@ghcr.io/acme/csv:1":                    "",
		"https://ghcr.io/acme/csv:1":                                "",
		"oci://ghcr.io/acme/csv?x=1":                                "",
		"oci://ghcr.io#/acme/csv":                                   "",
		"oci://ghcr.io/" + strings.Repeat("a", 300):                 "",
	} {
		r, err := oci.ParseReference(text)
		if got := strings.Join([]string{r.Host, r.Repository, r.Tag, r.Digest}, " "); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
}

func FuzzReference(f *testing.F) {
	for _, s := range []string{"oci://ghcr.io/acme/csv:1.2.0", "localhost:5000/csv@sha256:" + strings.Repeat("0a", 32), "[::1]/a:b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := oci.ParseReference(s)
		if err != nil {
			return
		}
		if again, err := oci.ParseReference(r.String()); err != nil || again != r {
			t.Errorf("%q: %q is %+v, %v", s, r, again, err)
		}
	})
}

// TestPushPull pushes a module twice, which gives the same artifact, and pulls it by its tag and its digest.
func TestPushPull(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	ref, first := pushed(t, s)
	if _, again := pushed(t, s); again.Manifest != first.Manifest {
		t.Errorf("the same module is %s, and %s", first.Manifest, again.Manifest)
	}
	r := open(t, s.Host, oci.Options{})
	for _, ref := range []oci.Reference{ref, ref.At(first.Manifest)} {
		got, a, err := pull(t, r, ref)
		if err != nil || !bytes.Equal(got, module) || a.Manifest != first.Manifest || a.Digest != first.Digest || a.Size != int64(len(module)) || a.Annotations["org.opencontainers.image.title"] != "csv" {
			t.Errorf("%s: got %q, %+v, %v", ref, got, a, err)
		}
	}
	for _, rest := range []string{"acme/csv:2", "acme/none:1", "acme/csv@sha256:" + strings.Repeat("0", 64)} {
		if _, _, err := pull(t, r, reference(t, s.Host, rest)); !errors.Is(err, oci.ErrNotFound) || !strings.HasPrefix(err.Error(), s.Host+"/"+rest) {
			t.Errorf("%s: got %v", rest, err)
		}
	}
	_, _, err := pull(t, open(t, s.Host, oci.Options{MaxModule: 17}), ref)
	wants(t, err, "its module has 18 bytes; the limit is 17")
}

func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(module)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(module); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestForms pulls what other clients push, and invalid artifacts.
func TestForms(t *testing.T) {
	t.Parallel()
	const (
		wasm = "application/wasm"
		gz   = "application/vnd.oci.image.layer.v1.tar+gzip"
	)
	whole := archive(t, "plugin.wasm")
	for name, c := range map[string]struct {
		layers []layer
		change func(*ocispec.Manifest)
		want   string
	}{
		"wkg's and wassette's":                        {layers: []layer{{wasm, module}}},
		"with a policy beside it":                     {layers: []layer{{"application/vnd.wassette.policy+yaml", []byte("x: y")}, {wasm, module}}},
		"a layer of an older type":                    {layers: []layer{{"application/vnd.wasm.content.layer.v1+wasm", module}}},
		"an image":                                    {layers: []layer{{gz, zipped(t, whole)}}},
		"docker's":                                    {layers: []layer{{"application/vnd.docker.image.rootfs.diff.tar.gzip", zipped(t, whole)}}},
		"an image, not compressed":                    {layers: []layer{{"application/vnd.oci.image.layer.v1.tar", whole}}},
		"an image with other files":                   {layers: []layer{{gz, zipped(t, archive(t, "README.md", "a/b/plugin.wasm"))}}},
		"from oras without a type":                    {layers: []layer{{"application/vnd.oci.image.layer.v1.tar", module}}},
		"a module that is compressed":                 {layers: []layer{{gz, zipped(t, module)}}},
		"a module that unpacks to much more":          {layers: []layer{{gz, zipped(t, append(module[:len(module):len(module)], make([]byte, 8<<20)...))}}, want: "its module: it has more than 1048576 bytes"},
		"a compressed module that is cut off":         {layers: []layer{{gz, zipped(t, append(module[:len(module):len(module)], make([]byte, 64<<10)...))[:60]}}, want: "its module: it is damaged"},
		"neither module nor archive":                  {layers: []layer{{"application/vnd.oci.image.layer.v1.tar", []byte(strings.Repeat("print(1)\n", 200))}}, want: "its module: the layer is neither a module nor an archive with one: push it with toolsrv push"},
		"a script":                                    {layers: []layer{{"application/vnd.oci.image.layer.v1.tar", []byte("print(1)\n")}}, want: "the layer is neither a module nor an archive with one"},
		"no layer":                                    {want: "it has no module: it needs a layer of the type application/wasm"},
		"a layer of another type":                     {layers: []layer{{"text/\x1bplain", module}}, want: `it has no module: its first layer has the type "text/\x1bplain", and a module's is application/wasm`},
		"two modules":                                 {layers: []layer{{wasm, module}, {wasm, []byte("b")}}, want: "it has 2 modules"},
		"an image of two layers":                      {layers: []layer{{gz, zipped(t, whole)}, {gz, zipped(t, archive(t, "x.wasm"))}}, want: "it is an image with 2 layers"},
		"an image with two modules":                   {layers: []layer{{gz, zipped(t, archive(t, "a.wasm", "b.wasm"))}}, want: "more than one .wasm file"},
		"an image without a module":                   {layers: []layer{{gz, zipped(t, archive(t, "README.md"))}}, want: "has no .wasm file"},
		"an image that is not compressed as declared": {layers: []layer{{gz, []byte("no")}}, want: "is not the declared one"},
		"an image that is damaged":                    {layers: []layer{{gz, zipped(t, whole[:520])}}, want: "its module: the archive is damaged"},
		"an image that unpacks to much more":          {layers: []layer{{gz, zipped(t, append(archive(t, "a.txt")[:512], make([]byte, 8<<20)...))}}, want: "the archive"},
		"an image of many files":                      {layers: []layer{{gz, zipped(t, archive(t, strings.Split(strings.Repeat("a.txt ", 1200), " ")[:1200]...))}}, want: "more than 1000 files"},
		"a size below zero":                           {layers: []layer{{wasm, module}}, change: func(m *ocispec.Manifest) { m.Layers[0].Size = -1 }, want: "its module has -1 bytes"},
		"a size of 10 GB":                             {layers: []layer{{wasm, module}}, change: func(m *ocispec.Manifest) { m.Layers[0].Size = 10e9 }, want: "its module has 10000000000 bytes"},
		"an invalid digest":                           {layers: []layer{{wasm, module}}, change: func(m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../../x" }, want: "is not a supported digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ocitest.Serve(t)
			put(t, s, "acme/csv", "1", c.change, c.layers...)
			got, a, err := pull(t, open(t, s.Host, oci.Options{MaxModule: 1 << 20}), reference(t, s.Host, "acme/csv:1"))
			wants(t, err, c.want)
			if c.want == "" && (!bytes.Equal(got, module) || a.Size != int64(len(module))) {
				t.Errorf("got %q, %+v", got, a)
			}
		})
	}
}

// TestIndex pulls from an index such as image builders make.
func TestIndex(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	r := open(t, s.Host, oci.Options{})
	wasm := put(t, s, "acme/csv", "one", nil, layer{"application/wasm", module})
	content, err := http.Get(s.URL + "/v2/acme/csv/manifests/" + wasm)
	if err != nil {
		t.Fatal(err)
	}
	content.Body.Close()
	entry := func(architecture string) map[string]any {
		return map[string]any{"mediaType": ocispec.MediaTypeImageManifest, "digest": wasm, "size": content.ContentLength, "platform": map[string]string{"architecture": architecture, "os": "x"}}
	}
	for name, c := range map[string]struct {
		entries []map[string]any
		want    string
	}{
		"image plus statement": {[]map[string]any{entry("amd64"), entry("unknown")}, ""},
		"one for wasm":         {[]map[string]any{entry("amd64"), entry("wasm"), entry("arm64")}, ""},
		"several":              {[]map[string]any{entry("amd64"), entry("arm64")}, "it is an index of 2 artifacts"},
		"statements only":      {[]map[string]any{entry("unknown")}, "it is an index of 0 artifacts"},
	} {
		putJSON(t, s, "acme/csv", "all", ocispec.MediaTypeImageIndex, map[string]any{"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageIndex, "manifests": c.entries})
		got, _, err := pull(t, r, reference(t, s.Host, "acme/csv:all"))
		t.Log(name)
		wants(t, err, c.want)
		if c.want == "" && !bytes.Equal(got, module) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestCredentials logs in to a registry in each way.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const user, password = "ann", "secret-of-ann-7654321"
	for name, before := range map[string]func(http.ResponseWriter, *http.Request) bool{"basic": ocitest.Basic(user, password), "bearer": ocitest.Bearer(user, password)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ocitest.Serve(t)
			s.Before(before)
			ref := reference(t, s.Host, "acme/csv:1.2")
			keys := credentialsFile(t, s.Host, user, password)
			r := open(t, s.Host, oci.Options{Credentials: keys})
			if _, err := r.Push(t.Context(), ref, "csv.wasm", module, nil); err != nil {
				t.Fatal(err)
			}
			if got, _, err := pull(t, r, ref); err != nil || !bytes.Equal(got, module) {
				t.Errorf("got %q, %v", got, err)
			}
			_, _, err := pull(t, open(t, s.Host, oci.Options{Credentials: credentialsFile(t, "other.example", user, password)}), ref)
			wants(t, err, "there are none for it")
			wrong := credentialsFile(t, s.Host, user, "a-wrong-one")
			later := open(t, s.Host, oci.Options{Credentials: wrong})
			_, _, err = pull(t, later, ref)
			wants(t, err, "rejects the credentials")
			// Logging in again needs no restart.
			if err := os.WriteFile(wrong, testkit.Read(t, keys), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, _, err := pull(t, later, ref); err != nil || !bytes.Equal(got, module) {
				t.Errorf("after another login: got %q, %v", got, err)
			}
		})
	}
}

// TestCredentialsOfRepositories keeps credentials as podman does: those of the nearest name are used, and never those of another repository.
func TestCredentialsOfRepositories(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	var asked sync.Map // user by path
	s.Before(func(w http.ResponseWriter, q *http.Request) bool {
		user, _, ok := q.BasicAuth()
		if !ok {
			w.Header().Set("Www-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		asked.Store(strings.Split(strings.TrimPrefix(q.URL.Path, "/v2/"), "/manifests/")[0], user)
		return false
	})
	login := func(user string) string {
		return `{"auth":"` + base64.StdEncoding.EncodeToString([]byte(user+":x")) + `"}`
	}
	file := func(auths ...string) string {
		var parts []string
		for i := 0; i < len(auths); i += 2 {
			parts = append(parts, fmt.Sprintf("%q:%s", s.Host+auths[i], login(auths[i+1])))
		}
		return testkit.Put(t, t.TempDir(), "auth.json", `{"auths":{`+strings.Join(parts, ",")+`}}`)
	}
	for name, c := range map[string]struct {
		file string
		want map[string]string // "" is none
	}{
		"nearest":    {file("", "host", "/acme", "acme", "/acme/csv", "csv"), map[string]string{"acme/csv": "csv", "acme/csv/deep": "csv", "acme/pdf": "acme", "acmes/csv": "host", "other": "host"}},
		"only below": {file("/acme/csv", "csv"), map[string]string{"acme/csv": "csv", "acme/pdf": "", "acme": "", "other/csv": ""}},
		"the host":   {file("", "host"), map[string]string{"acme/csv": "host"}},
	} {
		r := open(t, s.Host, oci.Options{Credentials: c.file})
		for range 2 { // twice, the second time with cached credentials of the others
			for repository, want := range c.want {
				asked.Delete(repository)
				_, err := r.Resolve(t.Context(), oci.Reference{Host: s.Host, Repository: repository, Tag: "1"})
				got, _ := asked.Load(repository)
				if got == nil {
					got = ""
				}
				if got != want || want != "" && !errors.Is(err, oci.ErrNotFound) {
					t.Errorf("%s: %s is asked for as %q, want %q (%v)", name, repository, got, want, err)
				}
			}
		}
	}
}

// TestUnknownHost checks for a readable message about a host that does not exist.
func TestUnknownHost(t *testing.T) {
	t.Parallel()
	r := open(t, "registry.example", oci.Options{Network: hosts{}})
	_, _, err := pull(t, r, reference(t, "registry.example", "acme/csv:1"))
	wants(t, err, "registry.example/acme/csv:1: there is no host registry.example: check the name")
	if strings.Contains(err.Error(), "lookup") {
		t.Errorf("got %v", err)
	}
}

// TestHelper gets credentials from a helper program, as docker does.
func TestHelper(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper is a shell script")
	}
	s := ocitest.Serve(t)
	s.Before(ocitest.Basic("ann", "secret-of-ann-7654321"))
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "docker-credential-ours"), []byte("#!/bin/sh\nread host\n[ \"$1 $host\" = \"get "+s.Host+"\" ] && echo '{\"Username\":\"ann\",\"Secret\":\"secret-of-ann-7654321\"}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	keys := func(helper string) string {
		text, err := json.Marshal(map[string]any{"credHelpers": map[string]string{s.Host: helper}})
		if err != nil {
			t.Fatal(err)
		}
		return testkit.Put(t, t.TempDir(), "config.json", text)
	}
	ref := reference(t, s.Host, "acme/csv:1.2")
	if _, err := open(t, s.Host, oci.Options{Credentials: keys("ours")}).Push(t.Context(), ref, "csv.wasm", module, nil); err != nil {
		t.Error(err)
	}
	_, err := open(t, s.Host, oci.Options{Credentials: keys("missing")}).Push(t.Context(), ref, "csv.wasm", module, nil)
	wants(t, err, ref.String()+": ask for the credentials of "+s.Host)
	wants(t, err, "docker-credential-missing")
	// podman's file is found where podman keeps it.
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("REGISTRY_AUTH_FILE", credentialsFile(t, s.Host, "ann", "secret-of-ann-7654321"))
	r, err := oci.Open(s.Host, oci.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Resolve(t.Context(), ref); err != nil {
		t.Error(err)
	}
}

// TestOptions refuses meaningless options.
func TestOptions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, c := range []struct {
		host string
		o    oci.Options
		want string
	}{
		{"ghcr.io/acme", oci.Options{}, "is not the name of a registry"},
		{"", oci.Options{}, "is not the name of a registry"},
		{"ghcr.io", oci.Options{CA: filepath.Join(folder, "none.pem")}, "none.pem"},
		{"ghcr.io", oci.Options{CA: testkit.Put(t, folder, "empty.pem", "no")}, "has no certificate"},
		{"ghcr.io", oci.Options{Credentials: filepath.Join(folder, "none.json")}, "none.json"},
		{"ghcr.io", oci.Options{Credentials: testkit.Put(t, folder, "x.json", `{"auths": "a-secret"}`)}, "is not in the format of docker's config.json"},
	} {
		_, err := oci.Open(c.host, c.o)
		wants(t, err, c.want)
		if err != nil && strings.Contains(err.Error(), "a-secret") {
			t.Errorf("got %v", err)
		}
	}
}

// TestProxy sends requests through a proxy, which may be on the machine itself.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	ref, _ := pushed(t, s)
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		if q.URL.Host != "registry.example" {
			t.Errorf("the proxy was asked for %s", q.URL)
		}
		q.URL.Host, q.RequestURI = s.Host, ""
		answer, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		var b bytes.Buffer
		_, _ = b.ReadFrom(answer.Body)
		_, _ = w.Write(b.Bytes())
	}))
	t.Cleanup(proxy.Close)
	r := open(t, "registry.example", oci.Options{PlainHTTP: true, Network: hosts{proxy: proxy.URL}})
	ref.Host = "registry.example"
	if got, _, err := pull(t, r, ref); err != nil || !bytes.Equal(got, module) || asked.Load() == 0 {
		t.Errorf("got %q, %v, after %d requests", got, err, asked.Load())
	}
}
