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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/internal/text"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// A restart in place makes the process execute its program file again, which may have another version by then. The process ID stays the same, and the
// listeners stay open: a client that connects meanwhile waits. An environment variable has the listeners' descriptors, and the addresses that they
// belong to.

// handoverVariable contains the descriptors and the addresses of open listeners, such as 7:8,127.0.0.1:8000,unix:/run/toolsrv.sock. If the supervisor
// has opened the listeners, the addresses are left out.
const handoverVariable = "TOOLSRV_LISTENER"

// handover is handoverVariable with its value.
func handover(fds, addresses []string) string {
	escaped := make([]string, len(addresses))
	for i, a := range addresses {
		escaped[i] = strings.NewReplacer("%", "%25", ",", "%2C").Replace(a) // an escaped comma, since a path may contain one
	}
	return handoverVariable + "=" + strings.Join(fds, ":") + "," + strings.Join(escaped, ",")
}

// trialTime is how long the new program may take to show that it runs.
const trialTime = 30 * time.Second

// A successor is the program that takes over when the server has ended.
type successor struct {
	path      string
	listeners []*os.File
	addresses []string // the configured addresses; none if the supervisor has opened the listeners
}

// close closes the listeners if there will be no successor.
func (s *successor) close() {
	for _, l := range s.listeners {
		_ = l.Close() // nothing was written to it
	}
}

// succeed prepares a restart in place: if the configuration can't be served or the program does not run, the server goes on unchanged. The settings
// that a reload can change are already in force when the new program begins, so they are known to be right.
func (o *openAPI) succeed(ctx context.Context, s *server.Server, started *config.Config) (*successor, error) {
	c, err := o.loadSoon()
	if err != nil {
		return nil, err
	}
	next := (*public.Config)(c.Handle())
	if err := core.CheckSources(c); err != nil {
		return nil, err
	}
	addresses := started.Server.Addresses
	if o.activated {
		addresses = nil
	} else if err := listen.Check(ctx, c.Server.Addresses, addresses); err != nil {
		return nil, err
	}
	if err := s.CheckRestart(next); err != nil {
		return nil, err
	}
	if o.program == "" {
		return nil, errors.New("find the program: this system doesn't say where it is")
	}
	if err := try(ctx, o.program); err != nil {
		return nil, err
	}
	if err := s.Reload(next); err != nil {
		return nil, err
	}
	listeners, err := s.HandOver()
	if err != nil {
		return nil, err
	}
	return &successor{o.program, listeners, addresses}, nil
}

// ownPath returns the path with which this program was started, as an absolute path with its links kept: a restart begins whatever program is there
// then, even if this program's file has moved. It must be called at the start, since the working directory and PATH may change. If the program was
// started under another name, it returns the path of its file, or "" if that is unknown, too.
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

// try asks the program at path for its version.
func try(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.WaitDelay = time.Second
	var out beginning
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err == nil && !versionLine.Match(out) {
		err = errors.New("it does not answer as toolsrv does")
	}
	if err != nil {
		return fmt.Errorf("try %s version: %w: %.200s", path, err, out)
	}
	return nil
}

// A beginning is a writer that keeps only the beginning of the output, since a program that is not ours may write a lot.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), 1<<10-len(*b))]...)
	return len(p), nil
}

// versionLine is the prefix of the output of `toolsrv version`, which is the same in every version.
var versionLine = regexp.MustCompile(`^toolsrv \S+ \(revision `)

// inherited returns the listeners that the process before this one has handed over, if there is such a process, with their configured addresses.
// Listeners of the supervisor have no addresses.
func inherited() (all []net.Listener, addresses []string, err error) {
	value := os.Getenv(handoverVariable)
	if value == "" {
		return nil, nil, nil
	}
	if err := os.Unsetenv(handoverVariable); err != nil { // the variable is for this process alone
		return nil, nil, fmt.Errorf("unset %s: %w", handoverVariable, err)
	}
	numbers, rest, _ := strings.Cut(value, ",")
	for number := range strings.SplitSeq(numbers, ":") {
		l, err := listenerOf(number)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s has no listener: it is for a restart in place, so unset it: %w", handoverVariable, err), listen.Close(all))
		}
		all = append(all, l)
	}
	if rest == "" {
		return all, nil, nil
	}
	for escaped := range strings.SplitSeq(rest, ",") {
		addresses = append(addresses, strings.NewReplacer("%2C", ",", "%25", "%").Replace(escaped))
	}
	if len(addresses) != len(all) {
		err := fmt.Errorf("%s has %d listeners and %d addresses: it is for a restart in place, so unset it", handoverVariable, len(all), len(addresses))
		return nil, nil, errors.Join(err, listen.Close(all))
	}
	for i := range all {
		all[i] = listen.Adopt(all[i])
	}
	return all, addresses, nil
}

// listenAnew returns listeners at addresses. It uses the open listeners where it can, and closes the others.
func listenAnew(ctx context.Context, listeners []net.Listener, before, addresses []string) ([]net.Listener, error) {
	all := make([]net.Listener, len(addresses))
	for i, address := range addresses {
		if at := slices.Index(before, address); at >= 0 {
			all[i] = listeners[at]
			listeners, before = slices.Delete(slices.Clone(listeners), at, at+1), slices.Delete(slices.Clone(before), at, at+1)
		}
	}
	_ = listen.Close(listeners) // nothing is written to them
	for i, address := range addresses {
		if all[i] != nil {
			continue
		}
		one, err := listen.All(ctx, []string{address})
		if err != nil {
			return nil, errors.Join(err, listen.Close(slices.DeleteFunc(all, func(l net.Listener) bool { return l == nil })))
		}
		all[i] = one[0]
	}
	return all, nil
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
