// Package readme_test does what README.md tells a newcomer to do.
package readme_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// notYet matches the server's answers while it does not have the tool yet: it has not noticed the file, or is still
// reading it.
var notYet = regexp.MustCompile(`"code":"(not_found|not_ready)"`)

// TestThreeCommands runs the beginning of README.md in an empty folder and with an empty cache: three commands lead from the archive of a release to
// an answer of a tool in Python. The archive is made from this source, as by `make dist`, and comes from a server of the test.
func TestThreeCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles an interpreter, and runs all tools of the README: not with -short")
	}
	blocks := readmeBlocks(t)
	before, source, ok := cutAt(blocks, "make run")
	if !ok || len(before) < 3 || len(source) != 3 || source[2] != "make test" {
		t.Fatalf("README.md has the blocks of shell commands %q; want three commands and more, then make run, and make test last", blocks)
	}
	install := strings.Split(before[0], "\n")
	if len(install) != 3 || !strings.HasPrefix(install[0], "curl -LO ") || !strings.HasSuffix(install[2], "toolsrv up my") {
		t.Fatalf("README.md begins with %q; want an archive, a folder and a server", install)
	}
	releases, archive := path.Split(strings.TrimPrefix(install[0], "curl -LO "))
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	server := httptest.NewServer(http.FileServer(http.Dir(pack(t, strings.TrimSuffix(archive, ".tar.gz")))))
	t.Cleanup(server.Close)

	begin := time.Now()
	shell(t, folder, strings.ReplaceAll(install[0], releases, server.URL+"/")+"\n"+install[1])
	program, arguments, _ := strings.Cut(install[2], " ")
	var compiling atomic.Bool
	address := start(t, folder, func(line string) {
		if strings.HasPrefix(line, "Compiling: ") {
			compiling.Store(true)
		}
	}, program, append(strings.Fields(arguments), "--log-level", "info", "--address", "127.0.0.1:0")...)
	for i, block := range before[1:] {
		follow(t, folder, address, block, true)
		if i == 0 {
			took, most := time.Since(begin), time.Duration(float64(time.Minute)*busy(t))
			t.Logf("from the first command to the first answer: %.1f s", took.Seconds())
			if took > most {
				t.Errorf("that is more than a minute on a quiet machine: the limit for this one is %.1f s", most.Seconds())
			}
			if !compiling.Load() {
				t.Error("CPython was compiled for seconds, and no message said so")
			}
		}
	}
}

// TestSource runs the commands that README.md has for a checkout, in a copy of the repository and with a server on a different port. In place of make
// run, which has a fixed port, it uses make build and make tools. make test would run this test itself, and a file that the commands leave behind
// could disturb it, so git must not see any such file.
func TestSource(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and serves all examples: not with -short")
	}
	_, source, _ := cutAt(readmeBlocks(t), "make run")
	// TestThreeCommands tests the case in which nothing was compiled before.
	cache := t.TempDir()
	if err := sandboxtest.ShareCode(cache); err != nil {
		t.Fatal(err)
	}
	gocache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(gocache)))
	t.Setenv("XDG_CACHE_HOME", cache)
	clone := copyRepository(t)
	shell(t, clone, "git init --quiet && git add --all")
	shell(t, clone, "make build tools")
	embedded(t, clone)
	address := start(t, clone, func(line string) {
		if strings.Contains(line, "matches no tool") {
			t.Errorf("a first run prints a warning although nothing is wrong: %s", line)
		}
	}, "bin/toolsrv", "openapi", "--config", "examples/toolsrv.toml", "--address", "127.0.0.1:0")
	follow(t, clone, address, source[1], false)
	if left := shell(t, clone, "git ls-files --others --modified --exclude-standard"); left != "" {
		t.Errorf("after README.md's commands there are files that git would add:\n%s", left)
	}
}

// TestTests lets make test run a module with a long test, a test that needs a program, and a test that fails: make test reports each.
func TestTests(t *testing.T) {
	_, source, _ := cutAt(readmeBlocks(t), "make run")
	clone := copyRepository(t)
	module := t.TempDir()
	testkit.Put(t, module, "go.mod", "module example.com/m\n\ngo 1.24\n")
	testkit.Put(t, module, "m_test.go", `package m

import "testing"

func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes an hour")
	}
	t.Log("after an hour")
}

func TestRust(t *testing.T) { t.Skip("there is no cargo") }
`)
	command := "env -u SKIPS -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u ALL -u PACKAGES " + source[2] + " MODULES=" + module
	for _, run := range []struct {
		all  string
		want []string
	}{
		{"", []string{"2 TESTS WERE NOT RUN AT ALL:", "skipped: it takes an hour\n    example.com/m TestLong (test)", "skipped: there is no cargo\n    example.com/m TestRust (test)"}},
		{" ALL=1", []string{"1 TESTS WERE NOT RUN AT ALL:", "skipped: there is no cargo\n"}},
	} {
		out := shell(t, clone, command+run.all)
		for _, want := range run.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s%s: want %q in\n%s", command, run.all, want, out)
			}
		}
	}
	testkit.Put(t, module, "n_test.go", "package m\n\nimport \"testing\"\n\nfunc TestRed(t *testing.T) { t.Fatal(\"it is red\") }\n")
	if out := shell(t, clone, "! "+command); !strings.Contains(out, "it is red") || !strings.Contains(out, "2 TESTS WERE NOT RUN AT ALL:") {
		t.Errorf("with a test that fails, %s prints\n%s", command, out)
	}
}

// readmeBlocks returns the blocks of shell commands in README.md, or skips the test if they can't be run.
func readmeBlocks(t *testing.T) []string {
	t.Helper()
	if testkit.Race(t) {
		t.Skip("runs only commands, and none of our code in this process: -race would find nothing")
	}
	for _, program := range []string{"bash", "make", "curl", "git", "tar"} {
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
	return shellBlocks(string(testkit.Read(t, "../../README.md")))
}

// TestReadmeIsShort keeps README.md so short that people read it.
func TestReadmeIsShort(t *testing.T) {
	if lines := bytes.Count(testkit.Read(t, "../../README.md"), []byte("\n")); lines > 120 {
		t.Errorf("README.md has %d lines, more than 120: tell it on a page below docs", lines)
	}
}

// cutAt cuts blocks before the one with a command.
func cutAt(blocks []string, command string) (before, after []string, found bool) {
	i := slices.Index(blocks, command)
	if i < 0 {
		return blocks, nil, false
	}
	return blocks[:i], blocks[i:], true
}

// follow runs a block of commands, and compares what they print with the comments below them. It waits for a tool that is added while the server
// runs.
func follow(t *testing.T, dir, address, block string, wait bool) {
	t.Helper()
	for _, step := range steps(block) {
		command := strings.ReplaceAll(step.command, "localhost:8000", address)
		got := shell(t, dir, command)
		for deadline := time.Now().Add(10 * time.Minute); wait && notYet.MatchString(got) && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
			got = shell(t, dir, command)
		}
		if step.want != "" && strings.TrimSpace(got) != step.want {
			t.Errorf("README.md says\n%s\n# %s\nbut it prints\n%s", step.command, step.want, got)
		}
	}
}

// pack returns a folder with an archive of this source's program. The folder in the archive has the given name.
func pack(t *testing.T, name string) string {
	t.Helper()
	folder := t.TempDir()
	shell(t, "../..", "CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false -ldflags=-s -o "+filepath.Join(folder, name, "toolsrv")+" ./cmd/toolsrv")
	shell(t, folder, "tar czf "+name+".tar.gz "+name)
	return folder
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

// copyRepository returns a folder with the files that git tracks or would add, as in a clone.
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
			continue // deleted, but git still lists it
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

// embedded checks that the tools of make run have their manifests inside. So the server need not run the tools to list them,
// and has them from the first moment.
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

// start starts a server in a folder, and returns its address once it is ready. After that, heard is called with each line that it prints, on another
// goroutine.
func start(t *testing.T, dir string, heard func(line string), program string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, filepath.Join(dir, program), arguments...)
	c.Dir = dir
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
	listening := regexp.MustCompile(`"msg":"listening","address":"([^"]+)"`)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		found := listening.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		address := found[1]
		go func() {
			defer close(read)
			for lines.Scan() {
				heard(lines.Text())
			}
		}()
		deadline := time.Now().Add(time.Minute)
		for time.Now().Before(deadline) {
			answer, err := http.Get("http://" + address + "/readyz")
			if err == nil {
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					return address
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatal("the server does not become ready")
	}
	close(read)
	t.Fatal("the server ended without a line that says where it listens")
	return ""
}

// busy returns roughly how many times longer something takes than on a quiet machine. That is the number of processes that want each
// processor, but at least 1.
func busy(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("the system does not report how busy it is, so the README's minute is not checked")
		return 60
	}
	load, parseErr := strconv.ParseFloat(string(bytes.Fields(text)[0]), 64)
	if err := errors.Join(err, parseErr); err != nil {
		t.Fatal(err)
	}
	return max(1, load/float64(runtime.NumCPU()))
}
