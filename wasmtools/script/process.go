package script

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/script/engine"
)

// The bounds of a helper. Memory and processor time are the system's to hold, where it can: see bound.
const (
	helperTime   = 30 * time.Second
	helperCPU    = 10        // seconds
	helperMemory = 1 << 30   // bytes
	helperStack  = 256 << 20 // bytes, of one goroutine
	helperOutput = 64 << 20  // bytes
	helperWrong  = 8 << 10   // bytes of what is wrong with a script
)

// collected is what a helper writes to its standard output.
type collected struct {
	Files  []engine.File
	Inputs []string
	Wrong  string // what is wrong with the script, or ""
}

// Help is all that a helper of a Builder does: it collects the files of the script that args name, the root and the script, and writes
// them to stdout. The process must do nothing else: it is bounded from then on, and ends where a script breaks a bound.
func Help(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 2 || args[0] == "" || LanguageOf(args[1]) == "" {
		return errors.New("a helper needs a folder and a script")
	}
	if err := bound(); err != nil {
		return fmt.Errorf("bound what a script may take: %w", err)
	}
	var c collected
	var err error
	c.Files, c.Inputs, err = collect(ctx, args[1], Options{Root: args[0]})
	if err != nil {
		c.Wrong = text.Clip(err.Error(), helperWrong)
	}
	return gob.NewEncoder(stdout).Encode(c)
}

// help has a helper collect the files of a script.
func (b Builder) help(ctx context.Context, root, path string) (files []engine.File, inputs []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helperTime, fmt.Errorf("reading it takes longer than %v", helperTime))
	defer cancel()
	args := append(b.Helper[1:len(b.Helper):len(b.Helper)], root, path)
	cmd := exec.CommandContext(ctx, b.Helper[0], args...)
	cmd.Env = []string{} // whatever a parser of scripts may be led to, secrets are not there
	var stderr bytes.Buffer
	cmd.Stderr = &limited{to: &stderr, left: 4 << 10}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start a process to read scripts: %w", err)
	}
	var c collected
	wrong := gob.NewDecoder(io.LimitReader(out, helperOutput)).Decode(&c)
	_, _ = io.Copy(io.Discard, out) // or it would wait
	err = cmd.Wait()
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return nil, nil, context.Cause(ctx)
	case ctx.Err() != nil && used < helperCPU*time.Second:
		return nil, nil, lost(path, fmt.Errorf("%w, and not because of what it has to do: the machine is busy, or its disk", context.Cause(ctx)))
	case ctx.Err() != nil:
		return nil, nil, &Error{tooMuch(path, context.Cause(ctx).Error())}
	case ended(err) && used < helperCPU*time.Second:
		return nil, nil, lost(path, fmt.Errorf("the process was ended from outside, as the system does where memory is short (%w)", err))
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		line, _, _ := strings.Cut(stderr.String(), "\n")
		return nil, nil, fmt.Errorf("read the script in a process of its own: %s", line)
	case err != nil: // by a signal, or because Go's runtime gave up
		return nil, nil, &Error{tooMuch(path, fmt.Sprintf("reading it takes more than %d s or a gibibyte of memory", helperCPU))}
	case wrong != nil:
		return nil, nil, fmt.Errorf("read what the process says that reads scripts: %w", wrong)
	case c.Wrong != "":
		return nil, c.Inputs, &Error{errors.New(c.Wrong)}
	}
	return c.Files, c.Inputs, nil
}

// A LostError is that a script could not be read, and not because of the script: the system ended the process that read it, or did not let
// it go on. Another try may succeed.
type LostError struct{ Err error }

// Error returns the text of Err.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// Temporary returns true.
func (*LostError) Temporary() bool { return true }

// lost is the error of a script that may be read another time.
func lost(path string, why error) error {
	return &LostError{fmt.Errorf("%s: it could not be read, and is tried again: %w", filepath.Base(path), why)}
}

// ended reports whether a process ended by a signal that somebody else sent. Where it broke a bound, the system sends others, as long as
// it takes that of the processor's time for one.
func ended(waited error) bool {
	exit, ok := errors.AsType[*exec.ExitError](waited)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && slices.Contains([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}, status.Signal())
}

// tooMuch is the error of a script that breaks a bound.
func tooMuch(path, why string) error {
	return fmt.Errorf("%s: %s: simplify it, or make a tool file of it with toolsrv build", filepath.Base(path), why)
}

// A limited writer drops what is too much.
type limited struct {
	to   io.Writer
	left int
}

// Write writes as much as is left, and takes the rest.
func (l *limited) Write(p []byte) (int, error) {
	n := min(l.left, len(p))
	l.left -= n
	_, err := l.to.Write(p[:n])
	return len(p), err
}
