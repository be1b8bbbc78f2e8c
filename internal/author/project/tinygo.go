package project

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// tinygoStack is how many bytes of a module's memory TinyGo may use as its stack. Recursive arguments use up TinyGo's default of 64 KiB at a depth of
// 47, but the host allows 64. A large stack costs a call nothing, since memory that is not written is not reset.
const tinygoStack int64 = 512 << 10

// maxTinygoStack is the largest stack that a project may ask for: half of a tool's default memory.
const maxTinygoStack int64 = 32 << 20

// tinygo builds file with TinyGo. A sandbox lives for one call, so it needs no garbage collector.
func (c *compiler) tinygo(ctx context.Context, file string) error {
	if err := find("tinygo", "install TinyGo 0.37 or later from https://tinygo.org/getting-started/install/"); err != nil {
		return err
	}
	if err := find("go", "TinyGo needs it; "+getGo); err != nil {
		return err
	}
	env, err := c.tinygoEnv(ctx)
	if err != nil {
		return err
	}
	said := &tail{out: c.stderr}
	watched := &compiler{project: c.project, temp: c.temp, stderr: said}
	slow := time.AfterFunc(slowTinyGo, func() {
		fmt.Fprintln(said, "TinyGo is still compiling: it evaluates package-level variables at compile time, however long that takes; compute large tables in a function that the tool calls")
	})
	err = watched.run(ctx, env, nil, "tinygo", c.tinygoArgs(file)...)
	slow.Stop()
	if says := toolfile.Advice(said.text()); err != nil && says != "" {
		return fmt.Errorf("%w: %s", err, says)
	}
	return err
}

// slowTinyGo is the time after which the author is told that TinyGo is still working.
const slowTinyGo = 20 * time.Second

// A tail passes on what is written to it, and keeps the end of it. It is safe for concurrent use.
type tail struct {
	out io.Writer

	mu   sync.Mutex
	kept []byte
}

const maxTail = 16 << 10 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return t.out.Write(p)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

// tinygoArgs returns the arguments with which TinyGo builds file.
func (c *compiler) tinygoArgs(file string) []string {
	args := []string{
		"build", "-target=" + c.tinygoTarget(), "-gc=leaking", "-no-debug", "-o", file,
		fmt.Sprintf("-ldflags=-extldflags='-z stack-size=%d'", c.project.stack),
		// Goroutines would have stacks on the heap, which silently overflow into the tool's data.
		"-opt=2", "-scheduler=none",
	}
	if !c.project.Plain {
		args = append(args, "-buildmode=c-shared") // a reactor: it can be called again and again
	}
	return append(args, ".")
}

func (c *compiler) tinygoTarget() string { return cmp.Or(c.project.target, "wasip1") }

var (
	// goRefused matches TinyGo's error for a Go that is newer or older than it supports.
	goRefused = regexp.MustCompile(`requires go version 1\.(\d+) through 1\.(\d+), got go1\.(\d+)`)
	// goUnknown matches TinyGo's error for a Go that it does not know only because it was compiled with an older one.
	goUnknown = regexp.MustCompile(`cannot compile with Go toolchain version go1\.(\d+) \(TinyGo was built using toolchain version go1\.(\d+)`)
)

// tinygoEnv returns the environment in which TinyGo finds a version of Go that it supports, or nil if it supports the installed one. A TinyGo
// supports only releases of Go that are older than itself.
func (c *compiler) tinygoEnv(ctx context.Context) ([]string, error) {
	text, err := c.ask(ctx, "tinygo", "info", "-target="+c.tinygoTarget())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil {
		return nil, nil
	}
	var newest, have string
	if match := goRefused.FindStringSubmatch(text); match != nil {
		newest, have = match[2], match[3]
	} else if match := goUnknown.FindStringSubmatch(text); match != nil {
		newest, have = match[2], match[1]
	}
	minor, _ := strconv.Atoi(newest)
	if got, _ := strconv.Atoi(have); minor >= got { // too old or unknown: the build will report it
		return nil, nil
	}
	version, err := c.findGo(ctx, minor)
	if err != nil {
		return nil, fmt.Errorf("this TinyGo supports Go up to 1.%d, but the installed Go is 1.%s: %w", minor, have, err)
	}
	fmt.Fprintf(c.stderr, "this TinyGo supports Go up to 1.%d, but the installed Go is 1.%s: building with GOTOOLCHAIN=%s\n", minor, have, version)
	return []string{"GOTOOLCHAIN=" + version}, nil
}

// findGo returns the name of the newest release of Go 1.minor that the go command has already downloaded. If there is none and the command may
// download one, it is the newest of all releases of Go 1.minor.
func (c *compiler) findGo(ctx context.Context, minor int) (string, error) {
	text, err := c.ask(ctx, "go", "env", "GOTOOLCHAIN", "GOMODCACHE", "GOHOSTOS", "GOHOSTARCH")
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	if err != nil || len(lines) < 4 {
		return "", fmt.Errorf("go env fails: %s", strings.TrimSpace(text))
	}
	setting, cache, platform := lines[0], lines[1], "."+lines[2]+"-"+lines[3]
	found := -1
	prefix := fmt.Sprintf("toolchain@v0.0.1-go1.%d.", minor)
	matches, _ := filepath.Glob(filepath.Join(cache, "golang.org", prefix+"*"+platform)) // no matches for an invalid pattern
	for _, m := range matches {
		patch, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(m), prefix), platform))
		if err == nil {
			found = max(found, patch)
		}
	}
	if found >= 0 {
		return fmt.Sprintf("go1.%d.%d", minor, found), nil
	}
	if setting != "auto" && !strings.HasSuffix(setting, "+auto") {
		return "", fmt.Errorf("install Go 1.%d and put it first in PATH, or let go download it, which GOTOOLCHAIN=%s forbids: "+
			"GOTOOLCHAIN=go1.%[1]d.0 toolsrv build", minor, setting)
	}
	text, err = c.ask(ctx, "go", "-C", c.temp, "list", "-m", "-f", "{{.Version}}", fmt.Sprintf("go@1.%d", minor))
	if err != nil {
		return "", fmt.Errorf("install Go 1.%d and put it first in PATH: %s", minor, strings.TrimSpace(text))
	}
	return "go" + strings.TrimSpace(text), nil
}

// ask runs a program and returns its output or, if it fails, its error output.
func (c *compiler) ask(ctx context.Context, program string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	quiet := &compiler{project: c.project, temp: c.temp, stderr: &complaint}
	if err := quiet.run(ctx, nil, &out, program, args...); err != nil {
		return complaint.String(), err
	}
	return out.String(), nil
}
