package release_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// path is the module at the root, and version a version that was never released.
const (
	path    = "github.com/toolsrv/toolsrv"
	version = "v0.99.0"
)

// TestGoInstall installs the program with `go install`, from a proxy that has the commit as the go command packs it: the program works without a
// checkout. It serves Python and JavaScript, and makes projects in each language.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the program")
	}
	program := install(t)

	var about struct {
		Version string
		Engines []any
	}
	if err := json.Unmarshal([]byte(output(t, nil, program, "version", "--json")), &about); err != nil {
		t.Fatal(err)
	}
	if about.Version != version || len(about.Engines) != 2 {
		t.Errorf("the program is %s with %d interpreters, want %s with 2", about.Version, len(about.Engines), version)
	}
	if got := output(t, nil, program, "licenses"); !strings.Contains(got, "CPython") || !strings.Contains(got, "wazero") {
		t.Errorf("licenses: %d bytes, without CPython or wazero", len(got))
	}
	projects := t.TempDir()
	for _, language := range []string{"go", "tinygo", "rust", "python", "javascript", "typescript"} {
		output(t, nil, program, "new", filepath.Join(projects, language), "--lang", language)
	}

	tools := t.TempDir()
	for name, text := range map[string]string{
		"greet.py": "from toolsrv import tool\n\n@tool\ndef greet(name: str) -> str:\n    \"Greets.\"\n    return f\"Hello, {name}!\"\n",
		"twice.js": "/**\n * Doubles a number.\n * @param {number} n What to double.\n * @returns {number}\n */\nexport function twice({ n }) {\n\treturn 2 * n;\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := up(t, program, tools)
	for _, c := range []struct{ path, body, want string }{
		{"/greet", `{"name": "Ada"}`, `"Hello, Ada!"`},
		{"/twice", `{"n": 21}`, `42`},
	} {
		if got := call(t, "http://"+address+c.path, c.body); got != c.want {
			t.Errorf("%s answers %s, want %s", c.path, got, c.want)
		}
	}
}

// install runs go install with a proxy of its own, which only has this version of the module. Dependencies come from this machine's caches, or from
// its proxy.
func install(t *testing.T) (program string) {
	t.Helper()
	proxy, bin := t.TempDir(), t.TempDir()
	folder := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := modzip.CreateFromVCS(&archive, module.Version{Path: path, Version: version}, "../../..", "HEAD", ""); err != nil {
		t.Fatal(err)
	}
	t.Logf("the module takes %.1f MiB", float64(archive.Len())/(1<<20))
	mod := member(t, archive.Bytes(), "go.mod")
	for name, content := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(`{"Version": "` + version + `"}`), version + ".mod": mod, version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var machine struct{ GOCACHE, GOMODCACHE, GOPROXY string }
	if err := json.Unmarshal([]byte(output(t, nil, "go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPROXY")), &machine); err != nil {
		t.Fatal(err)
	}
	output(t, []string{
		"GOBIN=" + bin, "GOCACHE=" + machine.GOCACHE, "GOMODCACHE=" + t.TempDir(), "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0",
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(machine.GOMODCACHE, "cache", "download") + "," + machine.GOPROXY,
		"GOSUMDB=off",                            // it does not know the test's commit
		"GOFLAGS=-mod=mod -modcacherw -trimpath", // with -trimpath, the build reuses what other builds have compiled
	}, "go", "install", path+"/cmd/toolsrv@"+version)
	return filepath.Join(bin, "toolsrv")
}

// member returns a file of a module's archive.
func member(t *testing.T, archive []byte, name string) []byte {
	t.Helper()
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	content, err := fs.ReadFile(files, path+"@"+version+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// up serves a folder until the test ends, and returns the address.
func up(t *testing.T, program, folder string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "up", folder, "--address", "127.0.0.1:0", "--log-level", "info")
	cmd.Dir, cmd.Env = folder, []string{"HOME=" + t.TempDir()}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addresses, read := make(chan string, 1), make(chan struct{})
	var said strings.Builder
	go func() {
		defer close(read)
		listening := regexp.MustCompile(`"msg":"listening","address":"([^"]+)"`)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				addresses <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		<-read
		if err := cmd.Wait(); err != nil && !errors.Is(err, t.Context().Err()) || t.Failed() {
			t.Errorf("toolsrv up: %v\n%s", err, &said)
		}
	})
	select {
	case address := <-addresses:
		return address
	case <-read:
		t.Fatal("toolsrv up has ended")
		return ""
	}
}

// call calls a tool as soon as it is served.
func call(t *testing.T, url, body string) string {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // waits until the tool's file is read
		r, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		switch r.StatusCode {
		case http.StatusNotFound, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			if time.Now().Before(deadline) {
				continue
			}
		}
		return string(got)
	}
}

// output runs a command outside of the checkout, and returns its output.
func output(t *testing.T, environment []string, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &stderr)
	}
	return string(out)
}
