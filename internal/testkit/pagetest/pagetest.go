// Package pagetest runs the commands on a page of docs/, as its reader would.
//
// A block of a page is run by its language: `sh` is a script that must succeed, and `console` holds commands after "$ " with
// what they print, where "..." stands for anything. A block with a file's name after its language, such as "```python hello.py", is written to that
// file. All blocks of a page run in one folder, in the order of the page.
package pagetest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// serving matches the command that starts a server, at the end of a script.
var serving = regexp.MustCompile(`(?m)^(toolsrv (?:openapi --config toolsrv\.toml|up \w+))\n\z`)

// A Block is a block of a page, between fences.
type Block struct {
	Language string
	File     string // the name after the language; "" if there is none
	Text     string
}

var fences = regexp.MustCompile("(?ms)^```(\\w*) ?([^\n`]*)\n(.*?)^```$")

// Blocks returns the blocks between the fences of a page.
func Blocks(page string) (blocks []Block) {
	for _, m := range fences.FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, Block{m[1], m[2], m[3]})
	}
	return blocks
}

// Pattern returns the expression that an output must match: the text, with "..." and the space before it standing for anything.
func Pattern(text string) *regexp.Regexp {
	parts := strings.Split(strings.TrimSpace(text), "...")
	for i, part := range parts {
		if i < len(parts)-1 {
			part = strings.TrimRight(part, " ")
		}
		if i > 0 {
			part = strings.TrimLeft(part, " ")
		}
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile(`(?s)^\s*` + strings.Join(parts, ".*") + `\s*$`)
}

// Steps returns the commands of a console, each with what it prints.
func Steps(console string) (steps [][2]string) {
	for _, step := range strings.Split(strings.TrimPrefix(console, "$ "), "\n$ ") {
		command, want, _ := strings.Cut(step, "\n")
		steps = append(steps, [2]string{command, want})
	}
	return steps
}

// A Shell runs commands in a folder of its own, with the toolsrv of this source in its PATH.
type Shell struct {
	Dir string
	Env []string

	t      *testing.T
	server string // the server's address, once a page has started one
}

// NewShell builds toolsrv, so only tests that may build programs can use it.
func NewShell(t *testing.T) *Shell {
	t.Helper()
	testkit.NeedBuild(t, "go", "sh")
	bin := program(t)
	return &Shell{t: t, Dir: t.TempDir(), Env: append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOPROXY=off",
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))}
}

// built has the folder of the program that running tests share, and the number of these tests.
var built struct {
	mu    sync.Mutex
	dir   string
	tests int
}

// program returns a folder with toolsrv, which is built for the first of the tests that run at the same time.
func program(t *testing.T) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.tests == 0 {
		dir, err := os.MkdirTemp("", "toolsrv-pages-")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", filepath.Join(dir, "toolsrv"), "./cmd/toolsrv")
		cmd.Dir = testkit.Root(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			os.RemoveAll(dir)
			t.Fatalf("build toolsrv: %v\n%s", err, out)
		}
		built.dir = dir
	}
	built.tests++
	t.Cleanup(func() {
		built.mu.Lock()
		defer built.mu.Unlock()
		if built.tests--; built.tests == 0 {
			os.RemoveAll(built.dir)
		}
	})
	return built.dir
}

// Command returns a command that has not been started.
func (s *Shell) Command(script string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	return cmd
}

// Run returns what a command prints to both outputs, as a terminal shows it. The command may fail: pages show that, too.
func (s *Shell) Run(command string) string {
	s.t.Helper()
	out, err := s.Command(command).CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		s.t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// Follow runs a page. replace can change the page first, so that it uses this checkout in place of a release.
func (s *Shell) Follow(page string, replace *strings.Replacer) {
	s.t.Helper()
	text := string(testkit.Read(s.t, filepath.Join(testkit.Root(s.t), "docs", page)))
	for _, block := range Blocks(replace.Replace(text)) {
		switch {
		case block.File != "":
			file := filepath.Join(s.Dir, filepath.FromSlash(block.File))
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(block.Text), 0o600)); err != nil {
				s.t.Fatal(err)
			}
		case block.Language == "sh" && serving.MatchString(block.Text):
			s.serve(page, block.Text)
		case block.Language == "sh":
			if out, err := s.Command("set -eu\n" + block.Text).CombinedOutput(); err != nil {
				s.t.Fatalf("the commands of docs/%s: %v\n%s\n%s", page, err, block.Text, out)
			}
		case block.Language == "console":
			for _, step := range Steps(block.Text) {
				s.Compare(page, step[0], step[1])
			}
		}
	}
}

// Compare runs a command of a page, and compares what it prints. A command that asks the server is repeated, since the server may take a second to
// notice a new file.
func (s *Shell) Compare(page, command, want string) {
	s.t.Helper()
	asks := strings.Contains(command, "localhost:8000") && s.server != ""
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		got := s.Run(strings.ReplaceAll(command, "localhost:8000", s.server))
		if Pattern(want).MatchString(got) {
			return
		}
		if !asks || time.Now().After(deadline) {
			s.t.Errorf("docs/%s says\n$ %s\n%s\nbut it prints\n%s", page, command, want, got)
			return
		}
	}
}

// serve starts the server of a page on a port of its own, until the test ends.
func (s *Shell) serve(page, script string) {
	s.t.Helper()
	server := s.Command("set -eu\n" + serving.ReplaceAllString(script, "exec $1 --address 127.0.0.1:0"))
	log, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = server.Process.Kill() // the process may have ended already
		_ = server.Wait()
	})
	address := regexp.MustCompile(`"msg":"listening","address":"([^"]+)"|REST +http://([^/ ]+)`)
	var seen bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(log, &seen)); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			s.server = m[1] + m[2]
			go io.Copy(io.Discard, log) // reads on until the process ends
			return
		}
	}
	s.t.Fatalf("the server of docs/%s does not say where it listens:\n%s", page, seen.String())
}
