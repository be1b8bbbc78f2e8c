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
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// A restart in place replaces the process by the program of its file, which may be another version by then. The process keeps its number,
// and the listeners stay open throughout: a client who connects meanwhile waits. The listeners' descriptors, and the address that they are
// for, are told in a variable of the environment.

// handoverVariable has descriptors,address of open listeners, such as 7,127.0.0.1:8000. There are more of them, as in 7:8, only where the
// supervisor has opened them; then there is no address.
const handoverVariable = "TOOLSRV_LISTENER"

// handover is handoverVariable with its value.
func handover(fds []string, address string) string {
	return handoverVariable + "=" + strings.Join(fds, ":") + "," + address
}

// trialTime is how long a program has to show that it runs.
const trialTime = 30 * time.Second

// A successor is the program that goes on when the server has ended.
type successor struct {
	path      string
	listeners []*os.File
	address   string // as it was configured; "" where the supervisor has opened the listeners
}

// close closes the listeners: there will be no successor.
func (s *successor) close() {
	for _, l := range s.listeners {
		_ = l.Close() // nothing was written to it
	}
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
	address := started.Server.Address
	if o.activated {
		address = ""
	} else if c.Server.Address != address {
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
	listeners, err := s.HandOver()
	if err != nil {
		return nil, err
	}
	return &successor{o.program, listeners, address}, nil
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

// inherited returns the listeners that a process before this one has handed over, and the address that they were configured for; none if there
// was no such process.
func inherited() ([]net.Listener, string, error) {
	value := os.Getenv(handoverVariable)
	if value == "" {
		return nil, "", nil
	}
	if err := os.Unsetenv(handoverVariable); err != nil { // it is for this process alone
		return nil, "", fmt.Errorf("unset %s: %w", handoverVariable, err)
	}
	numbers, address, _ := strings.Cut(value, ",")
	var all []net.Listener
	for number := range strings.SplitSeq(numbers, ":") {
		l, err := listenerOf(number)
		if err != nil {
			return nil, "", errors.Join(fmt.Errorf("%s has no listener: it is for a restart in place, so unset it: %w", handoverVariable, err), closeAll(all))
		}
		all = append(all, l)
	}
	return all, address, nil
}

func listenerOf(number string) (net.Listener, error) {
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%q is not the number of one", text.Short(number))
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	return net.FileListener(file)
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
