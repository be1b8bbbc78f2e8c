package command_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/door"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// release returns a version of a module with one tool, /NAMESPACE/TOOL.
func release(t *testing.T, namespace, tool, version string) []byte {
	t.Helper()
	return sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), strings.Replace(manifestOf(namespace, tool), `"1.2.3"`, `"`+version+`"`, 1))
}

// must runs a command that must succeed, and returns its output.
func (m managed) must(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := run(append(args, "--config", m.config)...)
	if code != 0 || stderr != "" {
		t.Fatalf("%q: got %d, %s", args, code, stderr)
	}
	return stdout
}

// versionOf returns the version of a tool that the server has, or "".
func (m managed) versionOf(t *testing.T, path string) string {
	t.Helper()
	var all admin.Tools
	if err := json.Unmarshal([]byte(m.must(t, "tools", "--all", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, tool := range all.Tools {
		if tool.Path == path {
			return tool.Version
		}
	}
	return ""
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

func (m managed) tools() string { return filepath.Join(filepath.Dir(m.config), "tools") }

// keeps waits until the server has that many versions of a file.
func (m managed) keeps(t *testing.T, path string, n int) (v admin.Versions) {
	t.Helper()
	eventually(t, "versions of "+path, func() bool {
		var h admin.History
		code, stdout, _ := run("history", path, "--json", "--config", m.config)
		if code == 0 && json.Unmarshal([]byte(stdout), &h) == nil && len(h.Files) == 1 {
			v = h.Files[0]
		}
		return len(v.Versions) >= n
	})
	return v
}

// TestPut puts a module, a new version of it, and the same again, in each way, and removes it.
func TestPut(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n")
	dir := t.TempDir()
	one, two := testkit.Put(t, dir, "add.wasm", release(t, "math", "add", "1")), testkit.Put(t, dir, "two.wasm", release(t, "math", "add", "2"))
	ways := map[string][]string{"over the socket": {"--config", m.config}, "over HTTP": {"--server", m.url}}
	var answers []string
	for way, flags := range ways {
		var placed admin.Placed
		ask := func(args ...string) {
			t.Helper()
			code, stdout, stderr := run(append(append(args, "--json"), flags...)...)
			if code != 0 || stderr != "" {
				t.Fatalf("%s: %q: got %d, %s", way, args, code, stderr)
			}
			placed = admin.Placed{}
			if err := json.Unmarshal([]byte(stdout), &placed); err != nil {
				t.Fatal(err)
			}
			answers = append(answers, stdout)
		}
		for _, step := range []struct {
			args    []string
			changed bool
			version string
		}{
			{[]string{"put", one, "sums/add.wasm", "--dry-run"}, true, ""},
			{[]string{"put", one, "sums/add.wasm", "--if-match", "none"}, true, "1"},
			{[]string{"put", one, "sums/add.wasm"}, false, "1"},
			{[]string{"put", one, "sums/add.wasm", "--dry-run"}, false, "1"},
			{[]string{"put", two, "sums/add.wasm", "--dry-run"}, true, "1"},
			{[]string{"put", two, "sums/add.wasm"}, true, "2"},
			{[]string{"remove", "sums/add.wasm", "--dry-run"}, true, "2"},
			{[]string{"remove", "sums/add.wasm"}, true, ""},
		} {
			ask(step.args...)
			if placed.DryRun != slices.Contains(step.args, "--dry-run") || placed.Changed != step.changed || strings.Join(placed.Tools, " ") != "/math/add" {
				t.Errorf("%s: %q: got %+v", way, step.args, placed)
			}
			if got := m.versionOf(t, "/math/add"); got != step.version { // with the answer
				t.Errorf("%s: %q: the server has %q, want %q", way, step.args, got, step.version)
			}
		}
		if _, err := os.Stat(filepath.Join(m.tools(), "sums", "add.wasm")); err == nil {
			t.Error("the file is still there")
		}
	}
	if half := len(answers) / 2; strings.Join(answers[:half], "") != strings.Join(answers[half:], "") {
		t.Errorf("the ways differ: %s", answers)
	}
	shop := testkit.Put(t, dir, "shop.wasm", release(t, "shop", "other", "1"))
	if got := m.must(t, "put", shop, "--dry-run"); !strings.Contains(got, fmt.Sprintf("Would change (version %x):", sha256.Sum256(testkit.Read(t, m.tools(), "shop.wasm")))) || !regexp.MustCompile(`serves +/shop/other`).MatchString(got) || !regexp.MustCompile(`removed +/shop/echo`).MatchString(got) {
		t.Errorf("a file with another tool: got %s", got)
	}
	if got := m.must(t, "put", one, "--dry-run"); !strings.Contains(got, "Would change (version none):") {
		t.Errorf("a new file: got %s", got)
	}
	m.must(t, "put", one)
	if got := string(testkit.Read(t, m.tools(), "add.wasm")); got != string(testkit.Read(t, one)) {
		t.Error("another file was put")
	}
	audit := m.must(t, "audit", "--json")
	for _, want := range []string{`"action": "put"`, `"action": "remove"`, `"digest"`} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit lacks %s:\n%s", want, audit)
		}
	}
}

// TestPutNamed puts a file into a source by its name, and shows that name wherever the file is named.
func TestPutNamed(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n[[source]]\ndirectory = \"tools\"\n[[source]]\nname = \"ours\"\ndirectory = \"other\"\nnamespaces = [\"math\"]\nprefix = \"math\"\n")
	other := filepath.Join(filepath.Dir(m.config), "other")
	testkit.Put(t, other, "bad.wasm", "not a module")
	file := testkit.Put(t, t.TempDir(), "add.wasm", release(t, "v2", "add", "1"))
	if got := m.must(t, "put", file, "--directory", "ours"); !strings.Contains(got, "/math/v2/add") {
		t.Errorf("put: got %s", got)
	}
	named := " (ours)"
	for _, c := range [][]string{{"tools", "math/v2/add", "--json"}, {"status", "--json", "--all"}, {"history", "math/v2/add", "--json"}} {
		eventually(t, strings.Join(c, " ")+" names the source", func() bool {
			_, stdout, _ := run(append(c, "--config", m.config)...)
			return strings.Contains(stdout, filepath.Join(other, "add.wasm")+named)
		})
	}
	eventually(t, "bad.wasm is refused", func() bool {
		return strings.Contains(m.must(t, "refused"), "bad.wasm"+named)
	})
	code, stdout, _ := run("check", "--config", m.config)
	if code != 1 || !strings.Contains(stdout, "ok       "+filepath.Join(other, "add.wasm")+named+": 1 tool: /math/v2/add") {
		t.Errorf("check: got %d, %s", code, stdout)
	}
	testkit.Put(t, filepath.Dir(m.tools()), "tools/thief.wasm", release(t, "math", "steal", "1"))
	code, stdout, _ = run("check", "--config", m.config)
	if code != 1 || !strings.Contains(stdout, "thief.wasm: has tools in the namespace math, which only the source ours may serve") {
		t.Errorf("check: got %d, %s", code, stdout)
	}
}

// TestPutRefuses checks that a refused put changes nothing: no file is added or removed, and every tool stays as it is.
func TestPutRefuses(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n")
	off := manage(t, "")
	several := manage(t, "upload = true\n[[source]]\ndirectory = \"tools\"\n[[source]]\nname = \"other\"\ndirectory = \"other\"\nnamespaces = [\"math\"]\n")
	fromRegistry := manage(t, "upload = true\n[[source]]\ndirectory = \"tools\"\n[[source]]\nname = \"csv\"\noci = \"127.0.0.1:1/acme/csv\"\ntag = \"1\"\n")
	dir := t.TempDir()
	good := testkit.Put(t, dir, "good.wasm", release(t, "math", "add", "1"))
	shop := testkit.Put(t, dir, "shop.wasm", release(t, "shop", "echo", "9"))
	broken := testkit.Put(t, dir, "broken.wasm", "not a module")
	large := testkit.Put(t, dir, "large.wasm", "")
	if err := os.Truncate(large, 10<<30); err != nil {
		t.Fatal(err)
	}
	testkit.Put(t, filepath.Dir(several.config), "other/there.txt", "")
	served := string(testkit.Read(t, m.tools(), "shop.wasm"))
	for name, c := range map[string]struct {
		args []string
		of   managed
		code int
		want string
	}{
		"not allowed":                          {[]string{"put", good}, off, 21, "[admin] upload = true"},
		"remove, not allowed":                  {[]string{"remove", "shop.wasm"}, off, 21, "[admin] upload = true"},
		"several directories":                  {[]string{"put", good}, several, 3, "Several directories are served"},
		"another directory":                    {[]string{"put", good, "--directory", "/etc"}, several, 3, "/etc is not served"},
		"a registry's":                         {[]string{"put", good, "--directory", "csv"}, fromRegistry, 3, "csv is served from a registry, where files can't be put: use toolsrv push"},
		"another's namespace":                  {[]string{"put", shop, "--directory", "other"}, several, 3, "has tools in the namespace shop, and its source other may serve only math"},
		"not a module":                         {[]string{"put", broken, "new.wasm"}, m, 3, "would be refused"},
		"not a module, over an existing file":  {[]string{"put", broken, "shop.wasm"}, m, 3, "would be refused"},
		"another's tool":                       {[]string{"put", shop, "math/add.wasm"}, m, 3, "/shop/echo is taken"},
		"10 GB":                                {[]string{"put", large}, m, 1, "more than 67108864 bytes"},
		"another version":                      {[]string{"put", shop, "shop.wasm", "--if-match", strings.Repeat("0", 64)}, m, 23, "was expected"},
		"a file that is there already":         {[]string{"put", shop, "shop.wasm", "--if-match", "none"}, m, 23, "was expected"},
		"a script":                             {[]string{"put", good, "x.py"}, m, 3, "must end in .wasm"},
		"outside":                              {[]string{"put", good, "../x.wasm"}, m, 3, "can't be the name"},
		"absolute":                             {[]string{"put", good, filepath.Join(dir, "x.wasm")}, m, 3, "can't be the name"},
		"hidden":                               {[]string{"put", good, ".x.wasm"}, m, 3, "can't be the name"},
		"another case":                         {[]string{"put", good, "SHOP.wasm"}, m, 3, "upper and lower case"},
		"below a file":                         {[]string{"put", good, "shop.wasm/x.wasm"}, m, 3, "not a folder"},
		"not a module, in a dry run":           {[]string{"put", broken, "new.wasm", "--dry-run"}, m, 3, "would be refused"},
		"another version, dry":                 {[]string{"put", shop, "shop.wasm", "--dry-run", "--if-match", "none"}, m, 23, "was expected"},
		"remove nothing, dry":                  {[]string{"remove", "nothing.wasm", "--dry-run"}, m, 22, "There is no file"},
		"remove a missing file":                {[]string{"remove", "nothing.wasm"}, m, 22, "There is no file"},
		"remove outside":                       {[]string{"remove", "../toolsrv.toml"}, m, 3, "can't be the name"},
		"remove another version":               {[]string{"remove", "shop.wasm", "--if-match", "none"}, m, 23, "was expected"},
		"no file":                              {[]string{"put", filepath.Join(dir, "no.wasm")}, m, 1, "no such file"},
		"a folder":                             {[]string{"put", dir}, m, 1, "not a file"},
		"roll back to nothing":                 {[]string{"rollback", "shop.wasm", "abcd"}, m, 22, "No version abcd"},
		"roll back a file that does not exist": {[]string{"rollback", "shop/ecko"}, m, 22, "There is no file or tool"},
		"not a digest":                         {[]string{"rollback", "shop.wasm", "../x"}, m, 3, "version"},
		"history of nothing":                   {[]string{"history", "nothing"}, m, 22, "There is no file or tool"},
	} {
		code, stdout, stderr := run(append(c.args, "--config", c.of.config)...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%s: got %d, %q %q; want %d, %q", name, code, stdout, stderr, c.code, c.want)
		}
	}
	entries, err := os.ReadDir(m.tools())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "broken.wasm shop.wasm weather.wasm" || string(testkit.Read(t, m.tools(), "shop.wasm")) != served {
		t.Errorf("there is %s, or another shop.wasm", got)
	}
	if got := m.versionOf(t, "/shop/echo"); got != "1.2.3" {
		t.Errorf("version %s is served", got)
	}
}

// TestRollbackRemoved puts back a removed file, where that is allowed, but never over a file that somebody else has put there.
func TestRollbackRemoved(t *testing.T) {
	t.Parallel()
	off := manage(t, "")
	off.keeps(t, "shop/echo", 1)
	if err := os.Remove(filepath.Join(off.tools(), "shop.wasm")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the file is gone", func() bool { return off.versionOf(t, "/shop/echo") == "" })
	if code, _, stderr := run("rollback", "shop.wasm", "--config", off.config); code != 21 || !strings.Contains(stderr, "shop.wasm was removed, and is put back only if") {
		t.Errorf("not allowed: got %d, %s", code, stderr)
	}

	m := manage(t, "upload = true\n")
	m.keeps(t, "shop/echo", 1)
	path := filepath.Join(m.tools(), "shop.wasm")
	first := string(testkit.Read(t, path))
	m.must(t, "put", testkit.Put(t, t.TempDir(), "shop.wasm", release(t, "shop", "echo", "2")))
	m.keeps(t, "shop/echo", 2)
	m.must(t, "rollback", "shop/echo")
	m.must(t, "remove", "shop.wasm")
	var h admin.History
	if err := json.Unmarshal([]byte(m.must(t, "history", "--json")), &h); err != nil || len(h.Files) != 1 || h.Files[0].Removed == nil || !strings.HasPrefix(h.Files[0].Removed.Who, "uid ") || h.Files[0].Removed.Since == nil || h.Files[0].Served != "" {
		t.Errorf("the history is %+v, %v", h, err)
	}
	m.must(t, "rollback", "shop.wasm", "--reason", "it is needed")
	if got := string(testkit.Read(t, path)); got != first || m.versionOf(t, "/shop/echo") != "1.2.3" {
		t.Error("the file that was put back is not the one that was served last")
	}
	if audit := m.must(t, "audit", "--json"); !strings.Contains(audit, "it is needed") {
		t.Errorf("the audit is %s", audit)
	}
	if shown := m.must(t, "history", "shop.wasm"); strings.Contains(shown, "removed") {
		t.Errorf("the history shows\n%s", shown)
	}

	// Somebody removes the file by hand while it is rolled back. A rollback then brings back the version that was served.
	m.must(t, "put", testkit.Put(t, t.TempDir(), "shop.wasm", release(t, "shop", "echo", "3")))
	m.keeps(t, "shop/echo", 3)
	m.must(t, "rollback", "shop/echo")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the file is gone", func() bool { return m.versionOf(t, "/shop/echo") == "" })
	if shown := m.must(t, "history", "shop.wasm"); !strings.Contains(shown, "removed") || strings.Contains(shown, "removed by") {
		t.Errorf("the history shows\n%s", shown)
	}
	m.must(t, "rollback", "shop.wasm")
	if got := m.versionOf(t, "/shop/echo"); got != "1.2.3" {
		t.Errorf("version %q came back", got)
	}

	// Another file takes over the tool of the removed file, so a rollback is refused. Then a link has the removed file's name.
	m.must(t, "remove", "shop.wasm")
	m.must(t, "put", testkit.Put(t, t.TempDir(), "other.wasm", release(t, "shop", "echo", "4")))
	if code, _, stderr := run("rollback", "shop.wasm", "--config", m.config); code != 3 || !strings.Contains(stderr, "/shop/echo is taken") {
		t.Errorf("another file has its tool: got %d, %s", code, stderr)
	}
	m.must(t, "remove", "other.wasm")
	if err := os.Symlink("weather.wasm", path); err != nil {
		t.Fatal(err)
	}
	_, _, _ = run("rollback", "shop.wasm", "--config", m.config) // once the server notices the link, it counts as another file
	if target, err := os.Readlink(path); target != "weather.wasm" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
}

// TestPutNeedsAdmin checks that somebody who may only look can't change anything.
func TestPutNeedsAdmin(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n")
	file := testkit.Put(t, t.TempDir(), "add.wasm", release(t, "math", "add", "1"))
	var made admin.TokenMade
	if err := json.Unmarshal([]byte(m.must(t, "tokens", "add", "reader", "--scope", "admin:read", "--scope", "*", "--json")), &made); err != nil {
		t.Fatal(made, err)
	}
	c, err := client.OverHTTP(m.url, made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do(t.Context(), "history", admin.HistoryArguments{}, ""); err != nil {
		t.Error(err)
	}
	content := testkit.Read(t, file)
	for name, do := range map[string]func() error{
		"put": func() error {
			_, err := c.Put(t.Context(), "put", admin.FileArguments{Name: "add.wasm"}, "", bytes.NewReader(content), int64(len(content)))
			return err
		},
		"remove": func() error {
			_, err := c.Do(t.Context(), "remove", admin.FileArguments{Name: "shop.wasm"}, "")
			return err
		},
		"rollback": func() error {
			_, err := c.Do(t.Context(), "rollback", admin.RollbackArguments{Path: "shop.wasm"}, "")
			return err
		},
	} {
		if failed, ok := errors.AsType[*wasmtools.Error](do()); !ok || failed.Code != wasmtools.CodeForbidden {
			t.Errorf("%s: got %v", name, failed)
		}
	}
	if _, err := os.Stat(filepath.Join(m.tools(), "add.wasm")); err == nil {
		t.Error("the file was put")
	}
}

// TestPutUnsent checks that a file refused for its name is not sent: the connection would end during the write, and the answer could be lost.
func TestPutUnsent(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n")
	over, err := client.OverSocket(m.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	boss, err := client.OverHTTP(m.url, adminToken)
	if err != nil {
		t.Fatal(err)
	}
	defer boss.Close()
	nobody, err := client.OverHTTP(m.url, adminToken+"x")
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	for name, c := range map[string]struct {
		by   *client.Client
		name string
		size int64
		want wasmtools.Code
	}{
		"too large, over the socket": {over, "x.wasm", 10 << 30, wasmtools.CodeInputTooLarge},
		"too large, over HTTP":       {boss, "x.wasm", 10 << 30, wasmtools.CodeInputTooLarge},
		"not a name":                 {boss, "../x.wasm", 1 << 20, wasmtools.CodeInvalidArguments},
		"without a token":            {nobody, "x.wasm", 1 << 20, wasmtools.CodeUnauthorized},
	} {
		file := &counted{Reader: zeros{}}
		_, err := c.by.Put(t.Context(), "put", admin.FileArguments{Name: c.name}, "", file, c.size)
		if failed, ok := errors.AsType[*wasmtools.Error](err); !ok || failed.Code != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if n := file.n.Load(); n != 0 {
			t.Errorf("%s: %d bytes were sent", name, n)
		}
	}
}

// counted counts the bytes read from a reader.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestPutHalf sends a part of a file and then nothing, and files in ways that are not accepted: nothing remains of these files, and meanwhile a
// reload and another put succeed.
func TestPutHalf(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n")
	u, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	content := release(t, "math", "add", "1")
	head := "POST " + door.Path + "/put?name=add.wasm HTTP/1.1\r\nHost: " + u.Host + "\r\nAuthorization: Bearer " + adminToken + "\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n"
	if _, err := io.WriteString(conn, head+string(content)); err != nil {
		t.Fatal(err)
	}
	coming := func() bool {
		entries, err := os.ReadDir(m.tools())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".toolsrv-put-") {
				return true
			}
		}
		return false
	}
	eventually(t, "the file comes", coming)
	m.must(t, "reload")
	if m.versionOf(t, "/math/add") != "" {
		t.Error("half a file is served")
	}
	m.must(t, "put", testkit.Put(t, t.TempDir(), "sub.wasm", release(t, "math", "sub", "1")))
	conn.Close()
	eventually(t, "the received part is removed", func() bool { return !coming() })

	for name, change := range map[string]func(q *http.Request){
		"no type":      func(q *http.Request) { q.Header.Del("Content-Type") },
		"a form":       func(q *http.Request) { q.Header.Set("Content-Type", "application/x-www-form-urlencoded") },
		"compressed":   func(q *http.Request) { q.Header.Set("Content-Encoding", "gzip") },
		"GET":          func(q *http.Request) { q.Method = http.MethodGet },
		"no name":      func(q *http.Request) { q.URL.RawQuery = "" },
		"two names":    func(q *http.Request) { q.URL.RawQuery = "name=a.wasm&name=b.wasm" },
		"another page": func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") },
		"rebinding":    func(q *http.Request) { q.Host = "evil.example" },
		"no token":     func(q *http.Request) { q.Header.Del("Authorization") },
		"escaped":      func(q *http.Request) { q.URL.RawQuery = "name=..%2f..%2fx.wasm" },
		"twice":        func(q *http.Request) { q.URL.RawQuery = "name=%252e%252e%252fx.wasm" },
		"NUL":          func(q *http.Request) { q.URL.RawQuery = "name=a.wasm%00" },
		"unending":     func(q *http.Request) { q.Body, q.ContentLength = io.NopCloser(zeros{}), -1 },
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+door.Path+"/put?name=x.wasm", bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/octet-stream")
		q.Header.Set("Authorization", "Bearer "+adminToken)
		change(q)
		answer, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			if name != "unending" { // the server may end the connection while the client writes
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		answer.Body.Close()
		if answer.StatusCode < 400 || answer.StatusCode >= 500 {
			t.Errorf("%s: got %d", name, answer.StatusCode)
		}
	}
	eventually(t, "nothing is left", func() bool { return !coming() })
	for _, at := range []string{filepath.Join(m.tools(), "x.wasm"), filepath.Join(filepath.Dir(m.config), "x.wasm")} {
		if _, err := os.Stat(at); err == nil {
			t.Errorf("there is %s", at)
		}
	}
}

// TestPutTooLate takes away the permission for a put while its file arrives: nothing is put.
// Proves: A caller reaches its own tools only
func TestPutTooLate(t *testing.T) {
	t.Parallel()
	content := release(t, "math", "add", "1")
	for name, c := range map[string]struct {
		change func(t *testing.T, m managed)
		status string
	}{
		"uploads are switched off":   {func(t *testing.T, m managed) { m.reconfigure(t, "upload = true", "upload = false") }, "403"},
		"the door is switched off":   {func(t *testing.T, m managed) { m.reconfigure(t, "enabled = true", "enabled = false") }, "404"},
		"the token is revoked":       {func(t *testing.T, m managed) { m.must(t, "tokens", "revoke", "boss") }, "401"},
		"the token has fewer scopes": {func(t *testing.T, m managed) { m.must(t, "tokens", "scopes", "boss", "admin:read", "*") }, "403"},
		"nothing":                    {func(*testing.T, managed) {}, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := manage(t, "upload = true\n")
			var made admin.TokenMade
			if err := json.Unmarshal([]byte(m.must(t, "tokens", "add", "boss", "--scope", "admin", "--json")), &made); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s/put?name=add.wasm HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", door.Path, made.Secret, len(content))
			if _, err := conn.Write(content[:100]); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the file comes", func() bool {
				found, err := filepath.Glob(filepath.Join(m.tools(), ".toolsrv-put-*"))
				return err == nil && len(found) > 0
			})
			c.change(t, m)
			if _, err := conn.Write(content[100:]); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			_, err = os.Stat(filepath.Join(m.tools(), "add.wasm"))
			if !strings.HasPrefix(answer.Status, c.status) || (err == nil) != (c.status == "200") {
				t.Errorf("got %s, and the file exists: %v; want %s", answer.Status, err, c.status)
			}
		})
	}
}

// reconfigure changes the configuration of the server.
func (m managed) reconfigure(t *testing.T, from, to string) {
	t.Helper()
	before := string(testkit.Read(t, m.config))
	if !strings.Contains(before, from) {
		t.Fatalf("the configuration has no %q", from)
	}
	testkit.Put(t, filepath.Dir(m.config), filepath.Base(m.config), strings.Replace(before, from, to, 1))
	m.must(t, "reload")
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestRollback rolls back to the previous and to a named version. The rollback stays when the file is touched, and ends when its content changes.
func TestRollback(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	path := filepath.Join(m.tools(), "shop.wasm")
	if code, _, stderr := run("rollback", "shop/echo", "--config", m.config); code != 22 || !strings.Contains(stderr, "No earlier version") {
		t.Errorf("nothing to roll back to: got %d, %s", code, stderr)
	}
	m.keeps(t, "shop/echo", 1)
	replace := func(version string) {
		t.Helper()
		testkit.Put(t, m.tools(), "shop.wasm.tmp", release(t, "shop", "echo", version))
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
		eventually(t, "version "+version, func() bool { return m.versionOf(t, "/shop/echo") == version })
	}
	replace("2")
	m.keeps(t, "shop.wasm", 2)
	replace("3")
	kept := m.keeps(t, "/shop/echo", 3)
	one, two, three := kept.Versions[2].Digest, kept.Versions[1].Digest, kept.Versions[0].Digest

	m.must(t, "rollback", "shop/echo", "--reason", "it is wrong")
	if got := m.versionOf(t, "/shop/echo"); got != "2" {
		t.Errorf("rolled back to %s", got)
	}
	if shown := m.must(t, "history", "shop/echo"); !strings.Contains(shown, "rolled back by uid") || !strings.Contains(shown, "it is wrong") || !strings.Contains(shown, "the file's own") {
		t.Errorf("the history shows\n%s", shown)
	}
	if shown := m.must(t, "history"); strings.Count(shown, "shop.wasm") != 3 || strings.Contains(shown, "weather") {
		t.Errorf("the history shows\n%s", shown)
	}
	if shown := m.must(t, "rollback", "shop/echo", two[:12]); !strings.Contains(shown, "Nothing to change") {
		t.Errorf("again: got %s", shown)
	}
	if code, _, _ := run("rollback", "shop.wasm", one, "--if-match", three, "--config", m.config); code != 23 {
		t.Errorf("another version is served: got %d", code)
	}
	m.must(t, "rollback", "shop.wasm", one, "--if-match", two)
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil { // the same content
		t.Fatal(err)
	}
	m.must(t, "reload")
	if got := m.versionOf(t, "/shop/echo"); got != "1.2.3" {
		t.Errorf("got %s", got)
	}
	m.must(t, "rollback", "shop.wasm", three) // back to the file's own content
	if got := m.versionOf(t, "/shop/echo"); got != "3" {
		t.Errorf("got %s", got)
	}
	m.must(t, "rollback", "shop.wasm", one)
	replace("4")
	if shown := m.must(t, "history", "shop.wasm"); strings.Contains(shown, "rolled back") {
		t.Errorf("the history shows\n%s", shown)
	}

	// A version that can't be served is refused, and the served version stays, even if it is no longer kept.
	versions, err := filepath.Glob(filepath.Join(filepath.Dir(m.config), "kept", "versions", "*"+one+"*"))
	if err != nil || len(versions) != 1 {
		t.Fatal(versions, err)
	}
	if err := os.WriteFile(versions[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run("rollback", "shop.wasm", one, "--config", m.config); code != 22 || !strings.Contains(stderr, "is damaged") {
		t.Errorf("a damaged version: got %d, %s", code, stderr)
	}
	if got := m.versionOf(t, "/shop/echo"); got != "4" {
		t.Errorf("got %s", got)
	}
}

// TestRollbackBroken rolls a broken file back for good to a stored version.
func TestRollbackBroken(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	m.keeps(t, "shop.wasm", 1)
	testkit.Put(t, m.tools(), "shop.wasm", "broken")
	eventually(t, "the file is refused", func() bool { return strings.Contains(m.must(t, "status"), "shop.wasm") })
	m.must(t, "rollback", "shop/echo")
	if shown := m.must(t, "status"); strings.Contains(shown, "shop.wasm") || m.versionOf(t, "/shop/echo") != "1.2.3" {
		t.Errorf("the file is still refused:\n%s", shown)
	}
}

// TestRollbackRace changes a file while it is rolled back: then its newest content is served, or the chosen version in its place.
func TestRollbackRace(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n")
	m.keeps(t, "shop.wasm", 1)
	releases := [][]byte{release(t, "shop", "echo", "2"), release(t, "shop", "echo", "3")}
	path := filepath.Join(m.tools(), "shop.wasm")
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; ctx.Err() == nil && err == nil; i++ {
			if err = os.WriteFile(path+".tmp", releases[i%2], 0o600); err == nil {
				err = os.Rename(path+".tmp", path)
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
		done <- err
	}()
	for ctx.Err() == nil {
		if code, _, stderr := run("rollback", "shop.wasm", "--config", m.config); code != 0 && code != 22 && code != 23 && !strings.Contains(stderr, "not_ready") {
			t.Errorf("got %d, %s", code, stderr)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	final := testkit.Put(t, t.TempDir(), "shop.wasm", release(t, "shop", "echo", "5"))
	m.must(t, "put", final)
	if got := m.versionOf(t, "/shop/echo"); got != "5" {
		t.Errorf("got %s", got)
	}
}
