package command_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestRegistry pushes a file, finds it, and pulls it by its tag and by its digest.
func TestRegistry(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	s := ocitest.Serve(t)
	file, folder := shop(t), t.TempDir()
	ref := "oci://" + s.Host + "/acme/shop"
	code, digest, stderr := run("push", file, ref+":1.2.0")
	digest = strings.TrimSpace(digest)
	if code != 0 || !strings.HasPrefix(digest, ref+"@sha256:") || !strings.Contains(stderr, "/acme/shop:1.2.0: 10 tools: /shop/echo, ") {
		t.Fatalf("push: got %d, %q, %s", code, digest, stderr)
	}
	if code, _, stderr := run("push", file, ref+":1.10.0"); code != 0 {
		t.Fatalf("push: got %d, %s", code, stderr)
	}
	for _, from := range []string{ref + ":1.2.0", digest} {
		to := filepath.Join(folder, "got.wasm")
		if code, stdout, stderr := run("pull", from, "-o", to); code != 0 || strings.TrimSpace(stdout) != digest || !strings.Contains(stderr, "got.wasm: 10 tools: /shop/echo, ") || !bytes.Equal(testkit.Read(t, to), testkit.Read(t, file)) {
			t.Errorf("pull %s: got %d, %q, %s", from, code, stdout, stderr)
		}
	}
	// An attachment of an artifact may have a tag, too.
	if code, _, stderr := run("push", file, ref+":sha256-"+strings.Repeat("0", 64)); code != 0 {
		t.Fatalf("push: got %d, %s", code, stderr)
	}
	if code, stdout, stderr := run("search", s.Host, "sho"); code != 0 || !strings.Contains(stdout, ref+"  1.10.0, 1.2.0\n") {
		t.Errorf("search: got %d, %q, %s", code, stdout, stderr)
	}
	if code, stdout, stderr := run("search", s.Host+"/acme", "csv"); code != 0 || stdout != "Nothing was found.\n" {
		t.Errorf("search: got %d, %q, %s", code, stdout, stderr)
	}
	// A file whose version differs from its tag is pushed, but there is a warning.
	for tag, want := range map[string]bool{"1.2.3": false, "v1.2.3": false, "1.2.4": true, "1.2": false, "1.20": true, "dev": false} {
		if code, _, stderr := run("push", file, ref+":"+tag); code != 0 || strings.Contains(stderr, "the tag says version "+tag+", but the file says 1.2.3") != want {
			t.Errorf("push %s: got %d, %s", tag, code, stderr)
		}
	}
	// A script is pushed as the module that toolsrv build makes of it.
	add := testkit.Put(t, folder, "add.ts", addTypeScript)
	if code, _, stderr := run("push", add, "oci://"+s.Host+"/acme/add:1"); code != 0 || !strings.Contains(stderr, "1 tool: /") {
		t.Errorf("push: got %d, %s", code, stderr)
	}
	if code, _, stderr := run("build", add); code != 0 {
		t.Fatal(stderr)
	}
	got := filepath.Join(folder, "got.wasm")
	if code, _, stderr := run("pull", "oci://"+s.Host+"/acme/add:1", "-o", got); code != 0 || !bytes.Equal(testkit.Read(t, got), testkit.Read(t, filepath.Join(folder, "add.wasm"))) {
		t.Errorf("pull: got %d, %s", code, stderr)
	}
}

// TestRegistrySource pushes a script with its imports, and makes the same module from the source that is pulled.
func TestRegistrySource(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	s := ocitest.ServeReferrers(t)
	folder, elsewhere := t.TempDir(), t.TempDir()
	add := testkit.Put(t, folder, "add.ts", "import { plus } from './parts/plus.ts';\n"+strings.Replace(addTypeScript, "a + b", "plus(a, b)", 1))
	part := testkit.Put(t, folder, "parts/plus.ts", "// Adds.\nexport function plus(a: number, b: number): number { return a + b }\n")
	testkit.Put(t, folder, "secret.ts", "// It is not imported.")
	private, public := keyPair(t)
	_, others := keyPair(t)
	ref := "oci://" + s.Host + "/acme/add:1.2.0"
	if code, _, stderr := run("push", add, ref, "--sign", "--key", private); code != 0 {
		t.Fatal(stderr)
	}
	to := filepath.Join(elsewhere, "add")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"pull", ref, "--source", to, "--key", others}, 1, "its signature is not valid"},
		{[]string{"pull", ref, "--source", to, "--key", public, "--minimum", "1.2.4"}, 1, "it is version 1.2.3, and the minimum is 1.2.4"},
		{[]string{"pull", ref, "--source", filepath.Join(elsewhere, "no", "where")}, 1, "there is no folder"},
		{[]string{"pull", ref, "--source", folder}, 1, "is not empty"},
		{[]string{"pull", ref, "--source", add}, 1, "write the source: "},
		{[]string{"pull", ref, "--source", to, "-o", add}, 2, "--source and --output exclude each other"},
		{[]string{"pull", ref, "--source", ""}, 2, "it is empty"},
	} {
		if code, stdout, stderr := run(c.args...); code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %d, %s, want %d, %q", c.args, code, stderr, c.code, c.want)
		}
	}
	if _, err := os.Stat(to); err == nil {
		t.Fatal("a source that was refused was written")
	}
	code, stdout, stderr := run("pull", ref, "--source", to, "--key", public, "--minimum", "1.2.3")
	if code != 0 || !strings.HasPrefix(stdout, "oci://"+s.Host+"/acme/add@sha256:") || !strings.Contains(stderr, filepath.Join("add", "parts", "plus.ts")) {
		t.Fatalf("got %d, %s, %s", code, stdout, stderr)
	}
	for file, want := range map[string]string{"add.ts": add, "parts/plus.ts": part} {
		if got := testkit.Read(t, to, file); !bytes.Equal(got, testkit.Read(t, want)) {
			t.Errorf("%s: got %q", file, got)
		}
	}
	if files, err := os.ReadDir(to); err != nil || len(files) != 2 {
		t.Errorf("got %v, %v", files, err)
	}
	again, pulled := filepath.Join(elsewhere, "again.wasm"), filepath.Join(elsewhere, "pulled.wasm")
	if code, _, stderr := run("build", filepath.Join(to, "add.ts"), "-o", again); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := run("pull", ref, "-o", pulled); code != 0 || !bytes.Equal(testkit.Read(t, again), testkit.Read(t, pulled)) {
		t.Errorf("the module built from the pulled source is a different one: %d, %s", code, stderr)
	}
	if _, got, _ := run("inspect", ref); !regexp.MustCompile(`\nsource +\d\.\d KiB, which .toolsrv pull --source DIR. pulls\n`).MatchString(got) {
		t.Errorf("got %s", got)
	}
	testkit.Put(t, elsewhere, ".hidden.js", "export const one = 1;")
	hides := testkit.Put(t, elsewhere, "hides.js", "import { one } from './.hidden.js';\n/** Adds one.\n * @param {number} n To what. */\nexport function hides(n) { return n + one; }")
	if code, _, stderr := run("push", hides, "oci://"+s.Host+"/acme/hides:1"); code != 1 || !strings.Contains(stderr, `a file ".hidden.js", which is hidden, or git would obey it: push it without its source`) {
		t.Errorf("got %d, %s", code, stderr)
	}
	if code, _, stderr := run("push", add, "oci://"+s.Host+"/acme/alone:1", "--source=false"); code != 0 {
		t.Fatal(stderr)
	}
	if _, got, _ := run("inspect", "oci://"+s.Host+"/acme/alone:1"); strings.Contains(got, "\nsource ") {
		t.Errorf("got %s", got)
	}
	if code, _, stderr := run("pull", "oci://"+s.Host+"/acme/alone:1", "--source", filepath.Join(elsewhere, "none")); code != 1 || !strings.Contains(stderr, "no source was pushed with it") {
		t.Errorf("got %d, %s", code, stderr)
	}
}

// TestRegistryAnswers compares the output of --json with the one that programs rely on.
func TestRegistryAnswers(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	s := ocitest.Serve(t)
	file, folder := shop(t), t.TempDir()
	var all strings.Builder
	add := testkit.Put(t, folder, "add.ts", addTypeScript)
	toml := testkit.Put(t, folder, "toolsrv.toml", "[[source]]\noci = '"+s.Host+"/acme/moves'\ntag = '~1'\n")
	moves := func(version, manifest string) {
		module := testkit.Put(t, t.TempDir(), "moves.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifest))
		if code, _, stderr := run("push", module, "oci://"+s.Host+"/acme/moves:"+version); code != 0 {
			t.Fatal(stderr)
		}
	}
	for _, args := range [][]string{
		{"push", file, "oci://" + s.Host + "/acme/shop:1.2.0"},
		{"pull", "oci://" + s.Host + "/acme/shop:1.2.0", "-o", filepath.Join(folder, "shop.wasm")},
		{"push", add, "oci://" + s.Host + "/acme/add:1"},
		{"pull", "oci://" + s.Host + "/acme/add:1", "--source", filepath.Join(folder, "add")},
		{"search", s.Host},
		{"search", s.Host + "/acme/shop"},
		{"search", s.Host, "none"},
		{"lock", "--config", toml},
		{"update", "--config", toml},
		{"update", "--config", toml},
	} {
		switch {
		case args[0] == "lock":
			moves("1.0.0", manifestOf("shop", "echo", "old"))
		case args[0] == "update":
			moves("1.0.1", strings.Replace(manifestOf("shop", "echo", "late"), `"abi":1,`, `"abi":1,"needs":{"kv":true},`, 1))
		}
		code, stdout, stderr := run(append(args, "--json")...)
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("%q: got %d, %s", args, code, stderr)
		}
		all.WriteString("$ toolsrv " + strings.Join(args, " ") + " --json\n" + stdout + "\n")
	}
	got := strings.NewReplacer(filepath.Dir(file), "/home", folder, "/home", s.Host, "registry.example.com").Replace(all.String())
	for _, p := range passes {
		got = p.is.ReplaceAllString(got, p.as)
	}
	golden := filepath.Join("testdata", "registry", "answers.txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(testkit.Read(t, golden)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPushSeveral pushes several files to one place: all are pushed, or none if one of them is bad.
func TestPushSeveral(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	file, folder := shop(t), t.TempDir()
	other := testkit.Put(t, folder, "other.wasm", testkit.Read(t, file))
	upper := testkit.Put(t, folder, "Upper.wasm", testkit.Read(t, file))
	same := testkit.Put(t, folder, "deep/other.wasm", testkit.Read(t, file))
	broken := testkit.Put(t, folder, "broken.wasm", "not a module")
	ref := "oci://" + s.Host + "/acme/tools:1"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"push", file, broken, ref}, 1, "broken.wasm: "},
		{[]string{"push", other, same, ref}, 2, "two files would be pushed to " + s.Host + "/acme/tools/other:1"},
		{[]string{"push", file, upper, ref}, 2, `"Upper" can't be part of a reference`},
		{[]string{"push", file, other}, 2, "does not name an artifact"},
	} {
		if code, _, stderr := run(c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %d, %s, want %q", c.args, code, stderr, c.want)
		}
	}
	if n := s.Requests.Load(); n > 0 {
		t.Errorf("the registry was asked %d times", n)
	}
	code, stdout, stderr := run("push", file, other, ref)
	lines := strings.Fields(stdout)
	if code != 0 || len(lines) != 2 {
		t.Fatalf("got %d, %s%s", code, stdout, stderr)
	}
	for i, name := range []string{"shop", "other"} {
		to := filepath.Join(folder, "pulled.wasm")
		if code, _, stderr := run("pull", "oci://"+s.Host+"/acme/tools/"+name+":1", "-o", to); code != 0 || !bytes.Equal(testkit.Read(t, to), testkit.Read(t, file)) {
			t.Errorf("%s: got %d, %s", name, code, stderr)
		}
		if !strings.HasPrefix(lines[i], "oci://"+s.Host+"/acme/tools/"+name+"@sha256:") {
			t.Errorf("got %s", lines[i])
		}
	}
}

// TestRegistryRefuses checks that impossible pushes and pulls are refused, and that an existing file is not changed.
func TestRegistryRefuses(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	file, folder := shop(t), t.TempDir()
	there := testkit.Put(t, folder, "there.wasm", "what was there")
	bare := testkit.Put(t, folder, "bare.wasm", testkit.Fixture(t, "e2e/guest"))
	misspelt := testkit.Put(t, folder, "misspelt.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), `{"namspace": "x"}`))
	ref := "oci://" + s.Host + "/acme/shop:1"
	if code, _, stderr := run("push", file, ref); code != 0 {
		t.Fatal(stderr)
	}
	s.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/") {
			w.(http.Flusher).Flush()
			_, _ = w.Write(bytes.Repeat([]byte("x"), len(testkit.Read(t, file))))
			return true
		}
		return false
	})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"pull", ref, "-o", there}, 1, "doesn't match its digest"},
		{[]string{"pull", "oci://" + s.Host + "/acme/none:1", "-o", there}, 1, "the registry has nothing with this name"},
		{[]string{"pull", ref, "-o", folder}, 1, "is a folder"},
		{[]string{"pull", "oci://" + s.Host + "/acme/shop@sha256:12", "-o", there}, 2, `"sha256:12" is not a supported digest`},
		{[]string{"push", bare, ref}, 1, "bare.wasm: it has no manifest: embed one with `toolsrv pack`"},
		{[]string{"push", misspelt, ref}, 1, "misspelt.wasm: its manifest: "},
		{[]string{"push", filepath.Join(folder, "none.py"), ref}, 1, "toolsrv: there is no script " + filepath.Join(folder, "none.py")},
		{[]string{"push", filepath.Join(folder, "none.ts"), ref}, 1, "toolsrv: there is no script " + filepath.Join(folder, "none.ts")},
		{[]string{"inspect", filepath.Join(folder, "none.py")}, 1, "toolsrv: there is no script " + filepath.Join(folder, "none.py")},
		{[]string{"push", file, "oci://127.0.0.1:1/acme/shop:1"}, 1, "127.0.0.1:1/acme/shop:1: nobody is listening at 127.0.0.1:1: check the port"},
		{[]string{"verify", ref}, 2, "name who must have signed it: --key, or --issuer, --subject and --root"},
		{[]string{"pull", "https://" + s.Host + "/x:1"}, 2, "does not name an artifact"},
		{[]string{"pull"}, 2, "REFERENCE is missing: name what to pull, as in toolsrv pull oci://ghcr.io/acme/csv:1.2.0"},
		{[]string{"pull", ref, "x"}, 2, `unexpected argument "x"`},
		{[]string{"push", file}, 2, "FILE or REFERENCE is missing"},
		{[]string{"push", file, "oci://" + s.Host + "/acme/shop"}, 2, "REFERENCE needs a tag"},
		{[]string{"push", file, "oci://" + s.Host + "/acme/shop@sha256:" + strings.Repeat("0", 64)}, 2, "REFERENCE needs a tag"},
		{[]string{"push", there, ref}, 1, "there.wasm: "},
		{[]string{"search"}, 2, "REGISTRY is missing"},
		{[]string{"search", "http://a.example"}, 1, "REGISTRY is a name, not an address: write toolsrv search a.example, with --plain-http"},
		{[]string{"search", "no such/host"}, 1, "is not the name of a registry"},
		{[]string{"search", s.Host, "a", "b"}, 2, `unexpected argument "b"`},
		{[]string{"pull", ref, "--ca", there}, 1, "has no certificate"},
		{[]string{"pull", ref, "--credentials", filepath.Join(folder, "none.json")}, 1, "read the credentials file"},
	} {
		if code, _, stderr := run(c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %d, %s, want %d, %q", c.args, code, stderr, c.code, c.want)
		}
	}
	if got := string(testkit.Read(t, there)); got != "what was there" {
		t.Errorf("the file has %q now", got)
	}
}
