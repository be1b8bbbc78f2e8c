//go:build unix

// Package alone_test tests the program of a release alone: without a checkout, with an empty environment and home folder, and with the
// compilers of one language in PATH. Everything in an author's first hour must work.
package alone_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// patient is the long time limit of a call, since other tests keep the machine busy.
const patient = "--timeout=2m"

// TestAlone makes, builds, tests and serves a project in each language that this machine has. Scripts are built and served with an empty PATH.
func TestAlone(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	program := build(t)
	t.Run("paths", func(t *testing.T) { findPaths(t, program) })
	for _, language := range project.Languages() {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			m := &machine{t: t, program: program, home: t.TempDir(), bin: t.TempDir(), work: t.TempDir()}
			if err := sandboxtest.ShareCode(filepath.Join(m.home, ".cache")); err != nil {
				t.Fatal(err)
			}
			switch language {
			case project.Go:
				m.needGo("GOCACHE", "GOFLAGS")
				m.env = append(m.env, "GOPROXY=off", "GOTOOLCHAIN=local")
			case project.TinyGo:
				m.needTinyGo()
			case project.Rust:
				m.needRust()
			}
			m.run("new", "texts/greet", "--lang", string(language))
			m.dir = filepath.Join(m.work, "texts", "greet")
			if language == project.Rust { // the folder with the crates that the SDK is tested with
				testkit.Put(t, m.dir, "Cargo.lock", testkit.Read(t, "../../sdk/rust/Cargo.lock"))
			}
			m.run("build", ".")
			if got := m.run("call", patient, "greet.wasm", `{"name": "Ada"}`); strings.TrimSpace(got) != `"Hello, Ada!"` {
				t.Errorf("call: got %s", got)
			}
			m.run("test", patient, "greet.wasm")
			m.dev()
			m.ownTests(language)
		})
	}
}

// build builds the program as a release does, into a folder with nothing else.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "toolsrv")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", program, "./cmd/toolsrv")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build toolsrv: %v\n%s", err, out)
	}
	return program
}

// findPaths looks for paths of this machine in the program.
func findPaths(t *testing.T, program string) {
	t.Helper()
	text := testkit.Read(t, program)
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{"the checkout": checkout, "HOME": os.Getenv("HOME")}
	out, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOROOT", "GOPATH", "GOMODCACHE", "GOCACHE").Output()
	if err == nil {
		err = json.Unmarshal(out, &folders)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, folder := range folders {
		if folder == "" || folder == "/" {
			continue
		}
		// A path begins where no other name comes before it: HOME may be /root, and a library may have a package pkg/root. A single expression for
		// all paths would take a hundred times as long.
		within := regexp.MustCompile(`^\W?` + regexp.QuoteMeta(folder+"/"))
		for i := bytes.Index(text, []byte(folder+"/")); i >= 0; {
			before := text[max(i-1, 0):]
			if within.Match(before) && before[0] != '.' && before[0] != '-' {
				t.Errorf("the program contains %s: …%q…", name, text[max(i-40, 0):min(i+120, len(text))])
				break
			}
			next := bytes.Index(text[i+1:], []byte(folder+"/"))
			if next < 0 {
				break
			}
			i += 1 + next
		}
	}
}

// A machine is an author's machine, with the program, and the tools of one language in bin.
type machine struct {
	t                        *testing.T
	program, home, bin, work string
	dir                      string // the project's folder, once there is one
	env                      []string
}

// command returns a command in the project with an environment of its own.
func (m *machine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir = m.dir
	if m.dir == "" {
		cmd.Dir = m.work
	}
	cmd.Env = append([]string{"HOME=" + m.home, "PATH=" + m.bin}, m.env...)
	return cmd
}

// run runs the program and returns what it prints.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	return m.output(m.command(m.program, args...))
}

func (m *machine) output(cmd *exec.Cmd) string {
	m.t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s%s", cmd, err, out, &stderr)
	}
	return string(out)
}

// need puts a program of this machine into bin, or skips the test if there is none.
func (m *machine) need(names ...string) {
	m.t.Helper()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			m.t.Skipf("there is no %s: %v", name, err)
		}
		if err := os.Symlink(path, filepath.Join(m.bin, name)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// needGo shares Go's caches with this machine, and the flags with which they can be used.
func (m *machine) needGo(variables ...string) {
	m.t.Helper()
	m.need("go")
	for _, name := range variables {
		value, err := exec.CommandContext(m.t.Context(), "go", "env", name).Output()
		if err != nil {
			m.t.Fatal(err)
		}
		m.env = append(m.env, name+"="+strings.TrimSpace(string(value)))
	}
}

// needTinyGo provides a Go that this TinyGo supports, if the installed one is too new, and LLVM, which some builds of TinyGo do not contain.
func (m *machine) needTinyGo() {
	m.t.Helper()
	m.need("tinygo")
	m.needGo("GOCACHE", "GOMODCACHE")
	cache, err := os.UserCacheDir()
	if err != nil {
		m.t.Fatal(err)
	}
	cache = filepath.Join(cache, "tinygo") // its C libraries, compiled
	if err := errors.Join(os.MkdirAll(cache, 0o755), os.MkdirAll(filepath.Join(m.home, ".cache"), 0o700), os.Symlink(cache, filepath.Join(m.home, ".cache", "tinygo"))); err != nil {
		m.t.Fatal(err)
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		for _, pattern := range []string{"clang-[0-9]*", "wasm-ld-[0-9]*", "wasm-opt"} {
			found, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				m.t.Fatal(err)
			}
			for _, file := range found {
				_ = os.Symlink(file, filepath.Join(m.bin, filepath.Base(file))) // the first one in PATH is used
			}
		}
	}
}

// needRust shares crates and their compiled code with other tests.
func (m *machine) needRust() {
	m.t.Helper()
	m.need("cargo", "rustc", "cc", "ld", "as")
	if out, err := exec.CommandContext(m.t.Context(), "rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output(); err != nil {
		m.t.Fatal(err)
	} else if _, err := os.Stat(strings.TrimSpace(string(out))); err != nil {
		m.t.Skipf("Rust has no target wasm32-unknown-unknown: %v", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		m.t.Fatal(err)
	}
	for name, folder := range map[string]string{"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"} {
		value := os.Getenv(name)
		if value == "" {
			value = filepath.Join(home, folder)
		}
		m.env = append(m.env, name+"="+value)
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE"} { // this machine's settings for registries
		if value := os.Getenv(name); value != "" {
			m.env = append(m.env, name+"="+value)
		}
	}
	target, err := filepath.Abs("../../build/project")
	if err != nil {
		m.t.Fatal(err)
	}
	m.env = append(m.env, "CARGO_TARGET_DIR="+target)
}

var served = regexp.MustCompile(`curl -s localhost:([0-9]+)/texts/greet `)

// dev serves the project until it has answered a request.
func (m *machine) dev() {
	m.t.Helper()
	cmd := m.command(m.program, "dev", ".", "--address", "127.0.0.1:0")
	out, in, err := os.Pipe()
	if err != nil {
		m.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = in, in
	err = cmd.Start()
	in.Close()
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			m.t.Errorf("dev: %v", err)
		}
	}()
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		match := served.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		go io.Copy(io.Discard, out) // closed when the process has ended
		status, body := post(m.t, "http://127.0.0.1:"+match[1]+"/texts/greet", `{"name": "Ada"}`)
		for tries := 1; status == http.StatusGatewayTimeout && tries < 10; tries++ { // the machine may be busy
			status, body = post(m.t, "http://127.0.0.1:"+match[1]+"/texts/greet", `{"name": "Ada"}`)
		}
		if status != http.StatusOK || body != `"Hello, Ada!"` {
			m.t.Errorf("dev: %d %s", status, body)
		}
		return
	}
	m.t.Errorf("dev served nothing:\n%s", &said)
}

func post(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(got)
}

// ownTests runs the tests of the project as its README says, if this machine has what they need.
func (m *machine) ownTests(language project.Language) {
	m.t.Helper()
	switch language {
	case project.Go, project.TinyGo:
		m.output(m.command("go", "test", "."))
		m.output(m.command("go", "mod", "tidy", "-diff"))
	case project.Rust:
		m.output(m.command("cargo", "test", "--quiet", "--locked"))
	case project.Python:
		m.need("python3")
		python, err := exec.CommandContext(m.t.Context(), "python3", "-c", "import sys, pytest; print(sys.executable)").Output()
		if err != nil {
			m.t.Skipf("its own tests: there is no python3 with pytest: %v", err)
		}
		if got := m.output(m.command(strings.TrimSpace(string(python)), "-m", "pytest")); !strings.Contains(got, "3 passed") {
			m.t.Errorf("pytest: %s", got)
		}
	case project.JavaScript:
		m.need("node", "npm", "sh")
		m.output(m.command("npm", "install", "--offline"))
		if got := m.output(m.command("npm", "test")); !strings.Contains(got, "pass 3") {
			m.t.Errorf("npm test: %s", got)
		}
	case project.TypeScript:
		m.need("node", "npm", "sh")
		tsx, err := filepath.Abs("../../examples/node_modules/tsx")
		if err == nil {
			_, err = os.Stat(tsx)
		}
		if err != nil {
			m.t.Skipf("its own tests: there is no tsx, make examples-npm installs it: %v", err)
		}
		// npm install would do this, but it gets tsx from a registry.
		packages := filepath.Join(m.dir, "node_modules")
		if err := errors.Join(os.Mkdir(packages, 0o755), os.Symlink(filepath.Join(m.dir, ".toolsrv", "js"), filepath.Join(packages, "toolsrv")),
			os.Symlink(tsx, filepath.Join(packages, "tsx"))); err != nil {
			m.t.Fatal(err)
		}
		if got := m.output(m.command("npm", "test")); !strings.Contains(got, "pass 3") {
			m.t.Errorf("npm test: %s", got)
		}
	}
}
