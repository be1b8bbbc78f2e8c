package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// A restart in place replaces the process by the program of its file, which may be another version by then. The process keeps its number,
// and the listener stays open throughout: a client who connects meanwhile waits. The listener's descriptor, and the address that it is
// for, are told in a variable of the environment.

// handoverVariable has descriptor,address of an open listener.
const handoverVariable = "TOOLSRV_LISTENER"

// handover is handoverVariable with its value.
func handover(fd uintptr, address string) string {
	return fmt.Sprintf("%s=%d,%s", handoverVariable, fd, address)
}

// trialTime is how long a program has to show that it runs.
const trialTime = 30 * time.Second

// A successor is the program that goes on when the server has ended.
type successor struct {
	path     string
	listener *os.File
	address  string // as it was configured
}

// succeed prepares a restart in place: a configuration that can't be served, or a program that does not run, leaves the server as it is. What
// a reload can take up of the configuration is in force already when the other program begins, so that it is known to be right.
func (o *openAPI) succeed(ctx context.Context, s *server.Server, started *config.Config) (*successor, error) {
	c, err := o.loadSoon()
	if err != nil {
		return nil, err
	}
	if err := core.CheckSources(c); err != nil {
		return nil, err
	}
	if c.Server.Address != started.Server.Address {
		if err := listen.Check(ctx, c.Server.Address); err != nil {
			return nil, err
		}
	}
	if err := s.CheckState(c); err != nil {
		return nil, err
	}
	if o.program == "" {
		return nil, errors.New("find the program: this system does not tell where it is")
	}
	if err := try(ctx, o.program); err != nil {
		return nil, err
	}
	if err := s.Reload(c); err != nil {
		return nil, err
	}
	listener, err := s.HandOver()
	if err != nil {
		return nil, err
	}
	return &successor{o.program, listener, started.Server.Address}, nil
}

// ownPath returns the path by which this program was started, absolute and with its links as they are: a restart begins what is put there
// later, wherever this program's file has gone. It is to be asked at the start, since the directory and PATH may change. Where the program
// was started under another name, its file is the answer, or "" if that is unknown, too.
func ownPath() string {
	actual, _ := os.Executable()
	if len(os.Args) == 0 {
		return actual
	}
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return actual
	}
	if path, err = filepath.Abs(path); err != nil {
		return actual
	}
	named, err := os.Stat(path)
	if err != nil {
		return actual
	}
	if file, err := os.Stat(actual); err == nil && !os.SameFile(named, file) {
		return actual
	}
	return path
}

// try has the program at path tell its version.
func try(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.WaitDelay = time.Second
	var out beginning
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err == nil && !versionLine.Match(out) {
		err = errors.New("that is not toolsrv's answer")
	}
	if err != nil {
		return fmt.Errorf("try %s version: %w: %.200s", path, err, out)
	}
	return nil
}

// A beginning is what was written first. A program that is not ours may write a lot.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), 1<<10-len(*b))]...)
	return len(p), nil
}

// versionLine is how the output of `toolsrv version` begins, in each version.
var versionLine = regexp.MustCompile(`^toolsrv \S+ \(revision `)

// inherited returns the listener that a process before this one has handed over, and the address that it was configured for; nil if there
// was none.
func inherited() (net.Listener, string, error) {
	value := os.Getenv(handoverVariable)
	if value == "" {
		return nil, "", nil
	}
	if err := os.Unsetenv(handoverVariable); err != nil { // it is for this process alone
		return nil, "", fmt.Errorf("unset %s: %w", handoverVariable, err)
	}
	number, address, _ := strings.Cut(value, ",")
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil || fd < 3 {
		return nil, "", errors.New(handoverVariable + " has no listener: it is for a restart in place, so unset it")
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, "", fmt.Errorf("%s has no listener: it is for a restart in place, so unset it: %w", handoverVariable, err)
	}
	return l, address, nil
}
