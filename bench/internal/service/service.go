// Package service runs the server's binary as a separate process, and looks at it from outside.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/load"
)

// Options say how to start. Binary and Directory are required.
type Options struct {
	Binary    string
	Directory string            // contains the folder tools; toolsrv.toml and the cache are put there
	Server    string            // keys of [server], a line each
	Rest      string            // further tables of the configuration
	Env       []string          // in addition to this process's own
	Files     int               // RLIMIT_NOFILE, soft and hard; 0 leaves it unchanged
	Mounts    string            // shell commands that mount something in a namespace of the server's own; $CACHE is its cache
	Cgroup    string            // the directory of its cgroup; "" means this process's own
	Each      func(line []byte) // called with each line of the log unless nil; it must not keep them
}

// A Service is a running server.
type Service struct {
	URL       string
	Log       *Log
	Directory string // Options.Directory

	pid     int
	ended   chan struct{} // closed once the process is gone
	stopped atomic.Bool
	err     error // how the process ended; set after ended is closed
}

// Tools returns the folder of the modules in a directory.
func Tools(directory string) string { return filepath.Join(directory, "tools") }

// Cache returns the folder of their compiled code.
func Cache(directory string) string { return filepath.Join(directory, "cache") }

// Start starts the server, and returns once it listens.
func Start(ctx context.Context, o Options) (*Service, error) {
	binary, err := filepath.Abs(o.Binary)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(o.Directory, "toolsrv.toml")
	text := fmt.Sprintf("[server]\naddress = \"127.0.0.1:0\"\n%s\n[tools]\ndirectory = \"tools\"\ncache_directory = \"cache\"\n%s\n", o.Server, o.Rest)
	err = errors.Join(os.WriteFile(config, []byte(text), 0o600),
		os.MkdirAll(Tools(o.Directory), 0o700), os.MkdirAll(Cache(o.Directory), 0o700))
	if err != nil {
		return nil, err
	}
	script := `exec "$0" "$@"`
	if o.Files > 0 {
		script = fmt.Sprintf("ulimit -n %d && %s", o.Files, script)
	}
	if o.Mounts != "" {
		script = o.Mounts + " && " + script
	}
	if o.Cgroup != "" {
		script = `echo $$ > "$CGROUP/cgroup.procs" && ` + script
	}
	arguments := []string{"sh", "-c", script, binary, "openapi", "--config", config}
	if o.Mounts != "" {
		arguments = append([]string{"unshare", "--mount", "--propagation", "private"}, arguments...)
		if os.Getuid() != 0 {
			arguments = append([]string{"unshare", "--user", "--map-root-user"}, arguments...)
		}
	}
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = append(append(os.Environ(), "CACHE="+Cache(o.Directory), "CGROUP="+o.Cgroup), o.Env...)
	log := &Log{address: make(chan string, 1), each: o.Each}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Service{Log: log, Directory: o.Directory, pid: cmd.Process.Pid, ended: make(chan struct{})}
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	select {
	case address := <-log.address:
		s.URL = "http://" + address
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("the server did not start: %w: %s", s.err, log.Tail())
	case <-ctx.Done():
	case <-time.After(2 * time.Minute):
	}
	s.kill()
	return nil, errors.Join(errors.New("the server does not listen"), ctx.Err())
}

// InFolder starts the server in a new folder, which replaces Options.Directory, with the files that fill puts into its folder of tools. It returns
// when the server is idle. The caller closes the Service.
func InFolder(ctx context.Context, o Options, fill func(tools string) error) (s *Service, err error) {
	if o.Directory, err = os.MkdirTemp("", "toolsrv-bench-"); err != nil {
		return nil, err
	}
	if err = errors.Join(os.Mkdir(Tools(o.Directory), 0o700), fill(Tools(o.Directory))); err == nil {
		s, err = Start(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(o.Directory))
	}
	if err = s.Ready(ctx); err == nil {
		_, err = s.Quiet(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close stops a server that InFolder has started, and removes its folder.
func (s *Service) Close() error {
	return errors.Join(s.Stop(10*time.Second), os.RemoveAll(s.Directory))
}

// Host returns the address that it listens on.
func (s *Service) Host() string { return strings.TrimPrefix(s.URL, "http://") }

// Died returns nil while the process runs, and how it ended afterwards.
func (s *Service) Died() error {
	select {
	case <-s.ended:
		return fmt.Errorf("the server ended: %v: %s", s.err, s.Log.Cause())
	default:
		return nil
	}
}

// Stop makes the server drain. It fails if the server had already ended, does not end within the time, or exits with an error.
func (s *Service) Stop(within time.Duration) error {
	if s.stopped.Swap(true) {
		return nil
	}
	if err := s.Died(); err != nil {
		return err
	}
	if err := syscall.Kill(s.pid, syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.ended:
	case <-time.After(within):
		s.kill()
		return fmt.Errorf("the server was not gone %v after SIGTERM", within)
	}
	if s.err != nil {
		return fmt.Errorf("the server ended with %w: %s", s.err, s.Log.Cause())
	}
	return nil
}

// Kill ends the server with SIGKILL, unless it has ended.
func (s *Service) Kill() {
	if s.Died() == nil {
		s.kill()
	}
}

// Signal sends the server a signal.
func (s *Service) Signal(signal syscall.Signal) error { return syscall.Kill(s.pid, signal) }

func (s *Service) kill() {
	_ = syscall.Kill(s.pid, syscall.SIGKILL)
	<-s.ended
}

// Ready waits until /readyz answers 200.
func (s *Service) Ready(ctx context.Context) error {
	for {
		answer, err := http.Get(s.URL + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return s.Died()
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Quiet waits until the server uses no processor time any more, so that its background work is done. It returns how long the server was busy,
// without the quiet time that shows that it has finished.
func (s *Service) Quiet(ctx context.Context) (time.Duration, error) {
	const still = 1200 * time.Millisecond
	begin, last := time.Now(), time.Now()
	used, err := s.Processor()
	for err == nil && time.Since(last) < still {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		var now time.Duration
		if now, err = s.Processor(); now > used+10*time.Millisecond {
			used, last = now, time.Now()
		}
	}
	return last.Sub(begin), err
}

// EndHelpers ends the processes that the server has started, as the server itself does when they are idle for a while.
func (s *Service) EndHelpers() error {
	lists, err := filepath.Glob(s.proc("task/*/children"))
	for _, list := range lists {
		children, _ := os.ReadFile(list) // an error means that the thread is gone
		for _, child := range strings.Fields(string(children)) {
			pid, wrong := strconv.Atoi(child)
			if wrong == nil {
				wrong = syscall.Kill(pid, syscall.SIGKILL)
			}
			err = errors.Join(err, wrong)
		}
	}
	return err
}

// Resident returns how many bytes of memory the process has, and the most that it had. The first includes all of its memory files, mapped or not; the
// second only what was mapped.
func (s *Service) Resident() (now, peak int64, err error) {
	text, err := os.ReadFile(s.proc("status"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		switch n <<= 10; fields[0] {
		case "RssAnon:", "RssFile:":
			now += n
		case "VmHWM:":
			peak = n
		default:
			continue
		}
		if err != nil {
			return 0, 0, err
		}
	}
	files, err := s.memoryFiles()
	return now + files, peak, err
}

// memoryFiles returns how many bytes the memfds of the process take.
func (s *Service) memoryFiles() (sum int64, err error) {
	list, err := os.ReadDir(s.proc("fd"))
	if err != nil {
		return 0, err
	}
	for _, d := range list {
		path := filepath.Join(s.proc("fd"), d.Name())
		if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, "/memfd:") {
			continue // or it was closed meanwhile
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		const block = 512 // bytes, whatever the file system's blocks are
		sum += info.Sys().(*syscall.Stat_t).Blocks * block
	}
	return sum, nil
}

// Mappings returns the number of the process's memory mappings.
func (s *Service) Mappings() (int, error) {
	text, err := os.ReadFile(s.proc("maps"))
	return strings.Count(string(text), "\n"), err
}

// Files returns the number of its open file descriptors.
func (s *Service) Files() (int, error) {
	list, err := os.ReadDir(s.proc("fd"))
	return len(list), err
}

// Processor returns the processor time of the server and of the processes that compile for it, in hundredths of a second.
func (s *Service) Processor() (time.Duration, error) {
	const user, childrensSystem = 14, 17
	used, err := s.ticks(s.pid, user, childrensSystem) // including children that have ended
	if err != nil {
		return 0, err
	}
	threads, err := os.ReadDir(s.proc("task"))
	if err != nil {
		return 0, err
	}
	for _, t := range threads {
		text, _ := os.ReadFile(filepath.Join(s.proc("task"), t.Name(), "children")) // a thread that is gone has no children
		for _, child := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return 0, err
			}
			if n, err := s.ticks(pid, user, user+1); err == nil { // it may have ended
				used += n
			}
		}
	}
	return time.Duration(used) * time.Second / 100, nil
}

// Call sends the server a load, whose Host it sets, and returns the results and the processor time that it took.
func (s *Service) Call(ctx context.Context, l load.Load, log io.Writer) (seen load.Seen, used time.Duration, err error) {
	l.Host = s.Host()
	before, err := s.Processor()
	if err != nil {
		return seen, 0, err
	}
	if seen, err = load.Generate(ctx, l, log); err != nil {
		return seen, 0, err
	}
	after, err := s.Processor()
	return seen, after - before, err
}

// ticks adds up fields of a process's stat file. Fields are counted from one.
func (s *Service) ticks(pid, from, to int) (sum int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const first = 3 // behind the name
	if len(fields) <= to-first {
		return 0, fmt.Errorf("the stat of process %d is %q", pid, text)
	}
	for _, field := range fields[from-first : to-first+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func (s *Service) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", s.pid, file) }
