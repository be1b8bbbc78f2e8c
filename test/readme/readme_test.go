// Package readme_test does what README.md tells a newcomer to do.
package readme_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// notYet is what the server answers while it has no such tool: before it has seen the file, and while it reads it.
var notYet = regexp.MustCompile(`"code":"(not_found|not_ready)"`)

// TestReadme runs the commands of README.md in a copy of the repository against a server on a port of its own, and
// compares what they print with the comments below them. make run is make build and make tools, with a fixed port, and make test
// would run this test; what may hinder that one is a file which the commands leave behind, so that nothing git sees may be left.
func TestReadme(t *testing.T) {
	if testkit.Race {
		t.Skip("runs commands, and nothing of ours in this process: -race would see nothing")
	}
	for _, program := range []string{"bash", "make", "curl", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("the README's commands need %s: %v", program, err)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("the README's commands are for a Unix shell")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlocks(string(text))
	if len(blocks) < 4 || !strings.HasPrefix(blocks[0], "make run ") || !strings.HasPrefix(blocks[len(blocks)-1], "make test ") {
		t.Fatalf("README.md has %d blocks of shell commands, %q; want make run first and make test last", len(blocks), blocks)
	}

	// As on the first day: nothing is compiled yet, but for what the go command has cached.
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	clone := copyRepository(t)
	shell(t, clone, "git init --quiet && git add --all")
	shell(t, clone, "make build tools")
	embedded(t, clone)
	address := serve(t, clone)
	for _, block := range blocks[1 : len(blocks)-1] {
		own := strings.Contains(block, "/my/") // taken up while the server runs
		for _, step := range steps(block) {
			command := strings.ReplaceAll(step.command, "localhost:8000", address)
			got := shell(t, clone, command)
			for deadline := time.Now().Add(time.Minute); own && notYet.MatchString(got) && time.Now().Before(deadline); {
				time.Sleep(20 * time.Millisecond)
				got = shell(t, clone, command)
			}
			if step.want == "" {
				continue
			}
			if strings.TrimSpace(got) != step.want {
				t.Errorf("README.md says\n%s\n# %s\nbut it prints\n%s", step.command, step.want, got)
			}
		}
	}
	if left := shell(t, clone, "git ls-files --others --modified --exclude-standard"); left != "" {
		t.Errorf("after README.md's commands there are files that git would take up:\n%s", left)
	}
}

// shellBlocks returns the fenced blocks marked sh.
func shellBlocks(text string) []string {
	var blocks []string
	for {
		_, rest, ok := strings.Cut(text, "```sh\n")
		if !ok {
			return blocks
		}
		block, after, ok := strings.Cut(rest, "\n```")
		if !ok {
			return blocks
		}
		blocks = append(blocks, block)
		text = after
	}
}

type step struct{ command, want string }

// steps splits a block at the comment lines, which say what the commands before them print.
func steps(block string) []step {
	var all []step
	var command []string
	for line := range strings.SplitSeq(block, "\n") {
		if want, ok := strings.CutPrefix(line, "# "); ok {
			all = append(all, step{strings.Join(command, "\n"), want})
			command = nil
			continue
		}
		command = append(command, line)
	}
	if len(command) > 0 {
		all = append(all, step{command: strings.Join(command, "\n")})
	}
	return all
}

// copyRepository returns a folder with the files that git knows or would take up, as a clone has them.
func copyRepository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", ".gitignore", "go.mod", "go.sum", "Makefile", "*.go", "examples", "internal", "sdk", "wasmtools")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	clone := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted, but not yet in git's view
		}
		target := filepath.Join(clone, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return clone
}

// shell runs commands and returns what they print.
func shell(t *testing.T, dir, commands string) string {
	t.Helper()
	c := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	c.Dir = dir
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s\n%v\n%s%s", commands, err, out, stderr.Bytes())
	}
	return string(out)
}

// embedded makes sure that the server need not run the tools of make run to list them, so that it has them from its first moment.
func embedded(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "build", "tools", "*.wasm"))
	if err != nil || len(files) < 10 {
		t.Fatalf("make tools makes %d files (%v)", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(content, []byte(manifest.Section)) {
			t.Errorf("%s has no manifest inside (%v)", file, err)
		}
	}
}

// serve starts the server as make run does, but on a port of its own, and returns its address once it is ready.
func serve(t *testing.T, dir string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, "bin/toolsrv", "openapi", "--config", "examples/toolsrv.toml", "--address", "127.0.0.1:0")
	c.Dir = dir
	c.Path = filepath.Join(dir, "bin", "toolsrv")
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-read
		_ = c.Wait()
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" {
			continue
		}
		go func() {
			defer close(read)
			for lines.Scan() {
				if strings.Contains(lines.Text(), "matches no tool") {
					t.Errorf("a first run begins with a warning that is nobody's mistake: %s", lines.Text())
				}
			}
		}()
		deadline := time.Now().Add(time.Minute)
		for time.Now().Before(deadline) {
			answer, err := http.Get("http://" + line.Address + "/readyz")
			if err == nil {
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					return line.Address
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatal("the server does not get ready")
	}
	close(read)
	t.Fatal("the server ended without a line that says where it listens")
	return ""
}
