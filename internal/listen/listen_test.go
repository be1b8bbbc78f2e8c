package listen_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/listen"
)

// listenAt returns a listener on a socket, which the test closes.
func listenAt(t *testing.T, path string) net.Listener {
	t.Helper()
	all, err := listen.All(t.Context(), []string{listen.Unix + path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listen.Close(all) })
	return all[0]
}

// answers reports whether somebody listens on a socket.
func answers(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// leftBehind leaves a socket on which nobody listens, as a killed process does.
func leftBehind(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip("this system has no such sockets: ", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	leftBehind(t, path)
	l := listenAt(t, path)
	if !answers(path) {
		t.Error("nobody listens")
	}
	if file, err := os.Lstat(path); err != nil || runtime.GOOS == "linux" && file.Mode().Perm() != 0o660 {
		t.Errorf("got %v, %v, want a socket for the owner and the group", file, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestSocketRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	leftBehind(t, in("probe"))
	taken := listenAt(t, in("taken"))
	if err := os.WriteFile(in("file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(in("file"), in("link")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, want string }{
		"in use":       {taken.Addr().String(), "another program may be listening there"},
		"a file":       {in("file"), "a file that is not a socket"},
		"a link":       {in("link"), "a file that is not a socket"},
		"no folder":    {in("none/s"), "make its folder"},
		"too long":     {in(strings.Repeat("x", 200)), "a socket's can have"},
		"below a file": {in("file/s"), "listen on unix:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			free := filepath.Join(t.TempDir(), "s")
			all, err := listen.All(t.Context(), []string{listen.Unix + free, listen.Unix + tt.path})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(all) > 0 {
				t.Errorf("got %v, %v, want an error with %q", all, err, tt.want)
			}
			if _, err := os.Lstat(free); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the first address is still bound: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if !answers(in("taken")) {
			t.Error("the other program's socket is gone")
		}
		if text, err := os.ReadFile(in("file")); string(text) != "kept" {
			t.Errorf("the file has changed: %q, %v", text, err)
		}
	})
}

// TestOthersSocket checks that a listener does not remove the socket of another listener that has replaced it.
func TestOthersSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	leftBehind(t, path)
	first := listenAt(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listenAt(t, path)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if !answers(path) {
		t.Error("the second listener's socket is gone")
	}
}

// TestHandedOver checks that a socket stays while another process uses it, and is removed by that process.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	leftBehind(t, path)
	l := listenAt(t, path)
	file, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	listen.Keep(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if !answers(path) {
		t.Error("nobody listens any more")
	}
	if err := listen.Adopt(next).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	l, err := listen.All(t.Context(), []string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close(l)
	address := l[0].Addr().String()
	if err := listen.Check(t.Context(), []string{address}, nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
	if err := listen.Check(t.Context(), []string{address}, []string{address}); err != nil {
		t.Errorf("an address that the server listens on already: got %v", err)
	}
}
