package main_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A supervisor stands in for the part of systemd that gets the messages of services.
type supervisor struct {
	t    *testing.T
	path string
	conn *net.UnixConn
}

func newSupervisor(t *testing.T) *supervisor {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // a short folder, since a socket's path has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PASSCRED, 1) }); errors.Join(e, err) != nil {
		t.Fatal(e, err)
	}
	return &supervisor{t, path, conn}
}

// next returns the lines of the next message that is not the watchdog's, and the process that has sent it according to the kernel.
func (s *supervisor) next() (lines []string, pid int) {
	s.t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	for {
		var text, control [4096]byte
		n, controls, _, _, err := s.conn.ReadMsgUnix(text[:], control[:])
		if err != nil {
			s.t.Fatal(err)
		}
		messages, err := syscall.ParseSocketControlMessage(control[:controls])
		if err != nil || len(messages) != 1 {
			s.t.Fatal(messages, err)
		}
		sender, err := syscall.ParseUnixCredentials(&messages[0])
		if err != nil {
			s.t.Fatal(err)
		}
		if string(text[:n]) != "WATCHDOG=1" {
			return strings.Split(string(text[:n]), "\n"), int(sender.Pid)
		}
	}
}

// want reads a message that must have these lines, or lines that begin with them.
func (s *supervisor) want(parts ...string) {
	s.t.Helper()
	lines, _ := s.next()
	for _, part := range parts {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, part) }) {
			s.t.Errorf("the supervisor was told %q, want %q", lines, part)
		}
	}
}

// TestSupervisor checks the messages of a whole life: start, a good and a bad reload, restart in place, and stop while a call runs. Each message
// comes from the main process, which is the only one that systemd listens to.
func TestSupervisor(t *testing.T) {
	t.Parallel()
	manager := newSupervisor(t)
	dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	cmd := command("openapi", "--config", filepath.Join(dir, "toolsrv.toml"), "--address", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+manager.path, "WATCHDOG_USEC=60000000")
	s := run(t, cmd, false)
	main := s.cmd.Process.Pid
	ready := func() {
		t.Helper()
		lines, pid := manager.next()
		if !slices.Contains(lines, "READY=1") || !slices.Contains(lines, "STATUS=ready") || pid != main {
			t.Errorf("process %d told %q, want that %d is ready", pid, lines, main)
		}
		if a := s.get("/readyz"); a.status != http.StatusOK {
			t.Errorf("/readyz says %d after the supervisor was told that the server is ready", a.status)
		}
	}
	reloading := func(status string) {
		t.Helper()
		lines, _ := manager.next()
		if len(lines) != 3 || lines[0] != "RELOADING=1" || lines[2] != "STATUS="+status {
			t.Fatalf("the supervisor was told %q, want a reload", lines)
		}
		at, err := strconv.ParseInt(strings.TrimPrefix(lines[1], "MONOTONIC_USEC="), 10, 64)
		uptime, _ := os.ReadFile("/proc/uptime")
		now, _ := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
		if err != nil || float64(at)/1e6 > now+1 || float64(at)/1e6 < now-600 {
			t.Errorf("%q at %f s after the machine's start", lines[1], now)
		}
	}
	ready()

	s.signal(syscall.SIGHUP)
	reloading("reading the configuration")
	ready()

	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[tools]\ndisabeld = []\n"))
	s.signal(syscall.SIGHUP)
	reloading("reading the configuration")
	manager.want("READY=1", "STATUS=the configuration stays as it was: ")
	s.signal(syscall.SIGUSR2)
	s.waitLog("the server goes on as it was") // and tells nothing
	put(t, filepath.Join(dir, "toolsrv.toml"), nil)

	s.signal(syscall.SIGUSR2)
	reloading("restarting")
	ready()
	s.waitCount("listening", 2)

	call := s.waiting("")
	s.signal(syscall.SIGTERM)
	manager.want("STOPPING=1", "EXTEND_TIMEOUT_USEC=45000000")
	s.signal(syscall.SIGHUP) // a stopping server does not become ready
	if a := <-call; a.status != http.StatusOK {
		t.Errorf("the call that ran got %d", a.status)
	}
	if got := s.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
	if err := manager.conn.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	var more [4096]byte
	if n, err := manager.conn.Read(more[:]); err == nil && string(more[:n]) != "WATCHDOG=1" {
		t.Errorf("after its end the supervisor was told %q", more[:n])
	}
}

// TestWatchdog checks that a server notifies a watchdog, before and after a restart in place.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	manager := newSupervisor(t)
	dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	cmd := command("openapi", "--config", filepath.Join(dir, "toolsrv.toml"), "--address", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+manager.path, "WATCHDOG_USEC=2000000")
	s := run(t, cmd, false)
	alive := func() {
		t.Helper()
		var text [4096]byte
		if err := manager.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for n, err := manager.conn.Read(text[:]); string(text[:n]) != "WATCHDOG=1"; n, err = manager.conn.Read(text[:]) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	alive()
	s.signal(syscall.SIGUSR2)
	s.waitCount("ready", 2)
	alive()
}

// TestSupervisedChildren checks that a program that the server only tries before a restart does not know the supervisor, and inherits none of its
// sockets.
func TestSupervisedChildren(t *testing.T) {
	t.Parallel()
	manager := newSupervisor(t)
	dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "toolsrv")
	put(t, program, content)
	seen := filepath.Join(dir, "seen")
	s := activated(t, manager, dir, program, listener(t), listener(t))
	put(t, program, []byte("#!/bin/sh\n{ env; ls -l /proc/$$/fd; } >"+seen+"\nexit 3\n"))
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGUSR2)
	s.waitLog("the server goes on as it was")
	text, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"NOTIFY_", "WATCHDOG_", "LISTEN_", "TOOLSRV_LISTENER", "socket:"} {
		if strings.Contains(string(text), mark) {
			t.Errorf("the program sees %s:\n%s", mark, text)
		}
	}
}

// listener returns a socket that listens.
func listener(t *testing.T) *os.File {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// activate is a shell command that starts a server as systemd's socket activation does: LISTEN_PID has the number of the server's process.
const activate = `exec env LISTEN_PID=$$ "$@"`

// activated starts a server whose sockets a supervisor has opened. Its url is that of the first socket.
func activated(t *testing.T, manager *supervisor, dir, program string, sockets ...*os.File) *service {
	t.Helper()
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := command("-c", activate, "sh", program, "openapi", "--config", filepath.Join(dir, "toolsrv.toml"))
	cmd.Path = "/bin/sh"
	cmd.Env = append(cmd.Env, "LISTEN_FDS="+strconv.Itoa(len(sockets)), "LISTEN_FDNAMES=first:second", "NOTIFY_SOCKET="+manager.path)
	cmd.ExtraFiles = sockets
	return run(t, cmd, false)
}

// TestActivation checks that a server uses two sockets that a supervisor has opened, whatever address is configured, and keeps them when it restarts
// in place. A client that connects before the server runs is answered.
func TestActivation(t *testing.T) {
	t.Parallel()
	manager := newSupervisor(t)
	dir := site(t, "[server]\naddress = \"127.0.0.1:1\"\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	sockets := []*os.File{listener(t), listener(t)}
	var urls []string
	for _, file := range sockets {
		l, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, "http://"+l.Addr().String())
		_ = l.Close()
	}
	early := make(chan string, 1)
	go func() {
		res, err := client().Post(urls[1]+"/shop/echo", "application/json", strings.NewReader(order))
		if err != nil {
			early <- err.Error()
			return
		}
		_ = res.Body.Close()
		early <- res.Status
	}()
	s := activated(t, manager, dir, binary, sockets...)
	for _, file := range sockets {
		_ = file.Close() // so that only the server has them
	}
	if got := <-early; got != "200 OK" {
		t.Errorf("the client that connected first got %s", got)
	}
	answered := func() {
		t.Helper()
		for _, s.url = range urls {
			if a := s.post("/shop/echo", order); a.status != http.StatusOK {
				t.Errorf("%s: %d %s", s.url, a.status, a.body)
			}
		}
	}
	answered()
	manager.want("READY=1")
	for n := range 2 {
		call := s.waiting("")
		s.signal(syscall.SIGUSR2)
		manager.want("RELOADING=1")
		if a := <-call; a.status != http.StatusOK {
			t.Errorf("the call that ran got %d", a.status)
		}
		manager.want("READY=1")
		s.waitCount("listening", 2*(n+2))
		answered()
	}
	s.signal(syscall.SIGTERM)
	if got := s.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
}

// TestActivationNonsense checks that a server does not start with sockets that it can't serve, and leaves them alone.
func TestActivationNonsense(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	local, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	localFile, err := local.File()
	if err != nil {
		t.Fatal(err)
	}
	defer localFile.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	packetFile, err := packets.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer packetFile.Close()
	plain, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	good := listener(t)
	for name, c := range map[string]struct {
		count string
		files []*os.File
		want  string
	}{
		"a file":                {"1", []*os.File{plain}, "descriptor 3 (first), which is a socket according to LISTEN_FDS"},
		"a file after a socket": {"2", []*os.File{good, plain}, "descriptor 4 (second)"},
		"a closed descriptor":   {"2", []*os.File{good}, "descriptor 4 (second)"}, // or a descriptor of Go's runtime
		"of datagrams":          {"1", []*os.File{packetFile}, "the socket 3 (first) of the supervisor does not listen"},
		"of packets":            {"1", []*os.File{localFile}, "the socket 3 (first) of the supervisor is one of unixpacket"},
		"too many":              {"999999", []*os.File{good}, `LISTEN_FDS is "999999"`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command("-c", activate, "sh", binary, "openapi", "--address", "127.0.0.1:0")
			cmd.Path, cmd.Dir = "/bin/sh", t.TempDir()
			cmd.Env = append(cmd.Env, "LISTEN_FDS="+c.count, "LISTEN_FDNAMES=first:second")
			cmd.ExtraFiles = c.files
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), c.want) {
				t.Errorf("%v %s, want exit code 1 and %q", err, out, c.want)
			}
		})
	}
	if got := fmt.Sprint(os.Stat(path)); strings.Contains(got, "no such file") {
		t.Error("the socket of another program is gone")
	}
}
