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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/text"
)

// The bounds of a helper. Memory and processor time are the system's to hold, where it can: see bound and watch.
const (
	helperTime   = 30 * time.Second
	helperCPU    = 10        // seconds
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

// given is the last argument of a helper whose standard input has the content of the script.
const given = "-"

// Help is all that a helper of a Builder does: it collects the files of a script, and writes them to stdout. args are the bytes of memory
// that it may take, the root and the script, and "-" where stdin has what the script's own file has. The process must do nothing else: it is
// bounded from then on, and ends where a script breaks a bound.
func Help(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) < 3 || len(args) > 4 || args[1] == "" || LanguageOf(args[2]) == "" || len(args) == 4 && args[3] != given {
		return errors.New("a helper needs its bytes of memory, a folder and a script")
	}
	memory, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	if err := bound(memory); err != nil {
		return fmt.Errorf("bound what a script may take: %w", err)
	}
	o := Options{Root: args[1]}
	if len(args) == 4 {
		if o.Content, err = io.ReadAll(io.LimitReader(stdin, maxContent)); err != nil {
			return fmt.Errorf("read the content of a script: %w", err)
		}
	}
	var c collected
	c.Files, c.Inputs, err = collect(ctx, args[2], o)
	if err != nil {
		c.Wrong = text.Clip(err.Error(), helperWrong)
	}
	return gob.NewEncoder(stdout).Encode(c)
}

// help makes a helper collect the files of a script, with that many bytes of memory.
func (b Builder) help(ctx context.Context, root, path string, content []byte, memory int64) (files []engine.File, inputs []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helperTime, fmt.Errorf("reading it takes longer than %v", helperTime))
	defer cancel()
	args := append(b.Helper[1:len(b.Helper):len(b.Helper)], strconv.FormatInt(memory, 10), root, path)
	if content != nil {
		args = append(args, given)
	}
	cmd := exec.CommandContext(ctx, b.Helper[0], args...)
	if content != nil {
		cmd.Stdin = bytes.NewReader(content)
	}
	cmd.SysProcAttr = apart.Attributes()
	cmd.Env = []string{} // whatever a parser of scripts may be led to, it finds no secrets
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
	broke := watch(cmd.Process.Pid, memory, func() { _ = cmd.Process.Kill() })
	var c collected
	wrong := gob.NewDecoder(io.LimitReader(out, helperOutput)).Decode(&c)
	_, _ = io.Copy(io.Discard, out) // or it would wait
	tooLarge := broke()             // before its number may be another's
	err = cmd.Wait()
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return nil, nil, context.Cause(ctx)
	case tooLarge, err != nil && !exited(err, 1) && apart.NoMemory(stderr.String()):
		return nil, nil, &Error{&memoryError{tooMuch(path, "reading it takes more than "+ofMemory(memory))}}
	case exited(err, 2) && says(stderr.String(), "pthread_create failed", "failed to create new OS thread"):
		return nil, nil, lost(path, errors.New("the system allowed the process no thread"))
	case ctx.Err() != nil && used < helperCPU*time.Second:
		return nil, nil, lost(path, fmt.Errorf("%w, though not because of its work: the machine or its disk is busy", context.Cause(ctx)))
	case ctx.Err() != nil:
		return nil, nil, &Error{tooMuch(path, context.Cause(ctx).Error())}
	case ended(err) && used < helperCPU*time.Second:
		return nil, nil, lost(path, fmt.Errorf("the process was ended from outside, as the system does where memory is short (%w)", err))
	case exited(err, 1):
		line, _, _ := strings.Cut(stderr.String(), "\n")
		return nil, nil, fmt.Errorf("read the script in a process of its own: %s", line)
	case err != nil && (used >= helperCPU*time.Second || says(err.Error()+stderr.String(), "CPU time limit exceeded")):
		why := fmt.Sprintf("reading it takes more than %d s of a processor", helperCPU)
		if memory > helperSmall && memory < apart.Ample { // to make do with little memory takes time
			why += ", or " + ofMemory(memory)
		}
		return nil, nil, &Error{tooMuch(path, why)}
	case err != nil: // by a signal, or because Go's runtime gave up
		line, _, _ := strings.Cut(stderr.String(), "\n")
		return nil, nil, &Error{tooMuch(path, strings.TrimSpace(fmt.Sprintf("reading it ended its process (%v) %s", err, line)))}
	case wrong != nil:
		return nil, nil, fmt.Errorf("read the answer of the process that reads scripts: %w", wrong)
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
// it takes the one about processor time for one.
func ended(waited error) bool {
	exit, ok := errors.AsType[*exec.ExitError](waited)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && slices.Contains([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}, status.Signal())
}

// A memoryError is that a script takes more memory than its helper had.
type memoryError struct{ error }

// Unwrap returns the error.
func (e *memoryError) Unwrap() error { return e.error }

// ofMemory says how much memory a helper has, and what limits it.
func ofMemory(bytes int64) string {
	if bytes < apart.Ample {
		return fmt.Sprintf("%d MiB of memory, which is all that this machine or its container has for it (a larger machine may read it)", bytes>>20)
	}
	return fmt.Sprintf("%d MiB of memory", bytes>>20)
}

// exited reports whether a process ended by itself with a code.
func exited(waited error, code int) bool {
	exit, ok := errors.AsType[*exec.ExitError](waited)
	return ok && exit.ExitCode() == code
}

// says reports whether a process's output has one of the texts.
func says(said string, any ...string) bool {
	return slices.ContainsFunc(any, func(text string) bool { return strings.Contains(said, text) })
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
