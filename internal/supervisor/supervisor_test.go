package supervisor_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/supervisor"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// patience is the longest wait for an event.
const patience = 30 * time.Second

// A listening is the supervisor's end, which gets the messages.
type ear struct {
	t    *testing.T
	conn *net.UnixConn
}

// listen listens at a path, or at an abstract name.
func listen(t *testing.T, name string) *ear {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Skip("this system has no such sockets: ", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &ear{t, conn}
}

// next returns the next message, or "" if none comes within a time.
func (e *ear) next(within time.Duration) string {
	e.t.Helper()
	if err := e.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		e.t.Fatal(err)
	}
	var room [4096]byte
	n, err := e.conn.Read(room[:])
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		e.t.Fatal(err)
	}
	return string(room[:n])
}

func (e *ear) want(parts ...string) {
	e.t.Helper()
	got := e.next(patience)
	for _, part := range parts {
		if !strings.Contains("\n"+got+"\n", "\n"+part) {
			e.t.Errorf("got %q, want a line %q in it", got, part)
		}
	}
}

// find finds the supervisor of an environment with these variables.
func find(t *testing.T, variables map[string]string) (*supervisor.Supervisor, *testkit.Log, error) {
	t.Helper()
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		t.Setenv(name, variables[name]) // the test restores later what Find unsets
	}
	log := &testkit.Log{}
	s, err := supervisor.Find(log.Logger(slog.LevelInfo))
	for name := range variables {
		if value, found := os.LookupEnv(name); found {
			t.Errorf("%s is still in the environment, as %q: other processes would inherit it", name, value)
		}
	}
	return s, log, err
}

func TestNothingWithoutVariables(t *testing.T) {
	s, log, err := find(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Ready()
	if err := s.Reload(func() error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("got %v, want the error of what was done", err)
	}
	s.Watch(t.Context(), func(context.Context) error { t.Error("Watch asked without a watchdog"); return nil })
	s.Restarting()
	s.Stopping(time.Second)
	if got := log.String(); got != "" || len(s.Listeners) > 0 {
		t.Errorf("logged %q, want nothing", got)
	}
}

func TestPhases(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "s"), "@toolsrv-supervisor-" + strconv.Itoa(os.Getpid())} {
		if name[0] == '@' && runtime.GOOS != "linux" {
			continue // no other system has abstract names
		}
		e := listen(t, name)
		s, _, err := find(t, map[string]string{"NOTIFY_SOCKET": name})
		if err != nil {
			t.Fatal(err)
		}
		good := func() error { return nil }
		_ = s.Reload(good) // sends nothing, since the process is not ready yet
		s.Ready()
		s.Ready()
		e.want("READY=1", "STATUS=ready")
		_ = s.Reload(good)
		e.want("RELOADING=1")
		e.want("READY=1", "STATUS=ready")
		_ = s.Reload(func() error { return errors.New("line 3:\nREADY=1 \"x\"\x00" + strings.Repeat("é", 1000)) })
		e.want("RELOADING=1")
		if got := e.next(patience); strings.Count(got, "\n") != 1 || len(got) > 600 || !strings.Contains(got, `STATUS=the configuration stays as it was: line 3: READY=1 "x"\u0000é`) {
			t.Errorf("a failed reload sent %q, want a status of one short line", got)
		}
		s.Restarting()
		e.want("RELOADING=1", "STATUS=restarting")
		s.Ready()          // none of these sends anything
		_ = s.Reload(good) // anything
		s.Stopping(45 * time.Second)
		e.want("STOPPING=1", "EXTEND_TIMEOUT_USEC=45000000")
		s.Stopping(time.Second)
		s.Restarting()
		if got := e.next(time.Millisecond); got != "" {
			t.Errorf("more was sent: %q", got)
		}
	}
}

// TestDeafSupervisors has supervisors that can't be reached: the log says so once, and nothing else happens.
func TestDeafSupervisors(t *testing.T) {
	dir := t.TempDir()
	stream, err := net.Listen("unix", filepath.Join(dir, "stream"))
	if err != nil {
		t.Skip("this system has no such sockets: ", err)
	}
	defer stream.Close()
	testkit.Put(t, dir, "file", "")
	for name, socket := range map[string]string{
		"too long":          "/" + strings.Repeat("x", 4000),
		"too long by one":   "/" + strings.Repeat("x", 108),
		"missing":           filepath.Join(dir, "missing"),
		"abstract, missing": "@toolsrv-nobody-" + strconv.Itoa(os.Getpid()),
		"only an @":         "@",
		"a directory":       dir,
		"a file":            filepath.Join(dir, "file"),
		"a stream":          filepath.Join(dir, "stream"),
		"relative":          "notify",
		"of a machine":      "vsock:2:1234",
	} {
		t.Run(name, func(t *testing.T) {
			s, log, err := find(t, map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "60000000"})
			if err != nil {
				t.Fatal(err)
			}
			s.Ready()
			_ = s.Reload(func() error { return nil })
			s.Stopping(time.Second)
			if got := log.Count("supervisor can't be told"); got != 1 {
				t.Errorf("the log says it %d times, want once:\n%s", got, log)
			}
		})
	}
}

// TestFullSupervisor has a supervisor that reads nothing: it holds up nobody for long, and the log says when it reads again.
func TestFullSupervisor(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	e := listen(t, name)
	s, log, err := find(t, map[string]string{"NOTIFY_SOCKET": name})
	if err != nil {
		t.Fatal(err)
	}
	s.Ready()
	for log.Count("can't be told") == 0 {
		_ = s.Reload(func() error { return nil })
	}
	for e.next(time.Millisecond) != "" {
	}
	_ = s.Reload(func() error { return nil })
	log.Wait(t, "can be told the server's state again")
}

func TestWatch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	e := listen(t, name)
	s, log, err := find(t, map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	e.want("WATCHDOG=1") // the time begins
	asked, answers := make(chan struct{}), make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("answers has no deadline")
			}
			select {
			case asked <- struct{}{}:
				return <-answers
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	for range 2 {
		<-asked
		answers <- nil
		e.want("WATCHDOG=1")
	}
	for range 3 {
		<-asked
		answers <- errors.New("stuck")
	}
	<-asked // all messages have been sent
	if got := e.next(time.Millisecond); got != "" {
		t.Errorf("a server that does not answer sent %q", got)
	}
	answers <- nil
	e.want("WATCHDOG=1")
	log.Wait(t, "the server answers its own requests again")
	if got := log.Count("does not answer its own requests", "stuck"); got != 1 {
		t.Errorf("the log has %d lines, want one:\n%s", got, log)
	}
	stop()
	<-done
}

func TestOtherWatchdogs(t *testing.T) {
	for name, c := range map[string]struct {
		usec, pid string
		warns     bool
	}{
		"of another process": {"200000", "1", false},
		"not a number":       {"soon", "", true},
		"negative":           {"-1", "", true},
		"none":               {"0", "", true},
		"too short":          {"1", "", true},
		"too long":           {"9223372036854775807", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, log, err := find(t, map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "s"), "WATCHDOG_USEC": c.usec, "WATCHDOG_PID": c.pid})
			if err != nil {
				t.Fatal(err)
			}
			s.Watch(t.Context(), func(context.Context) error { t.Error("asked"); return nil })
			if got := log.Count("WATCHDOG_USEC") > 0; got != c.warns {
				t.Errorf("the log has %q", log)
			}
		})
	}
}

func TestSocketsOfNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only systemd gives sockets in this way")
	}
	own := strconv.Itoa(os.Getpid())
	for name, c := range map[string]struct{ count, pid, wants string }{
		"another process":        {"2", "1", ""},
		"no process":             {"2", "", ""},
		"a malformed process ID": {"2", own + "x", ""},
		"none":                   {"0", own, ""},
		"too many":               {"999999", own, `LISTEN_FDS is "999999"`},
		"more than a number":     {"99999999999999999999", own, "LISTEN_FDS is"},
		"negative":               {"-1", own, "LISTEN_FDS is"},
		"not a number":           {"all\n", own, "LISTEN_FDS is"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := find(t, map[string]string{"LISTEN_FDS": c.count, "LISTEN_PID": c.pid, "LISTEN_FDNAMES": "x"})
			switch {
			case c.wants == "" && (err != nil || len(s.Listeners) > 0):
				t.Errorf("got %v, want no sockets", err)
			case c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)):
				t.Errorf("got %v, want %q in it", err, c.wants)
			}
		})
	}
}
