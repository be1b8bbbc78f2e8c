package socket_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// shortDir returns a folder whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	if os.Getuid() < 0 {
		t.Skip("this system doesn't say who opens a socket")
	}
	dir, err := os.MkdirTemp("", "tsv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// over returns a client for the socket at path.
func over(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
}

// TestPeers checks which user the system reports at the other end.
func TestPeers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "s")
	s, err := socket.Open(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := socket.Peers{}.Principal(r, wasmtools.Everybody())
		fmt.Fprintf(w, "%s %s %v %v %v", p, p.Origin(), p.Has(wasmtools.RoleAdmin), p.Has(wasmtools.RoleAdminRead), err)
	}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answer, err := over(path).Get("http://socket/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if want := fmt.Sprintf("uid %d", os.Getuid()); err != nil || !strings.HasPrefix(string(text), want) || !strings.HasSuffix(string(text), " socket true true <nil>") {
		t.Errorf("got %q, want %q (%v)", text, want, err)
	}
	if p, err := (socket.Peers{}).Principal(&http.Request{}, wasmtools.Everybody()); p != nil || err == nil {
		t.Errorf("a request that did not come over the socket: got %v, %v", p, err)
	}
}

// TestFolderOfOthers has a folder in which everybody could replace the server's socket by their own.
func TestFolderOfOthers(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(shortDir(t), "f")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o777: "anyone who can replace it can answer", 0o777 | os.ModeSticky: "", 0o755: "", 0o700: ""} {
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
		s, err := socket.Open(filepath.Join(folder, "s"), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		if err == nil {
			_ = s.Close()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: got %v, want %q", mode, err, want)
		}
	}
}

// TestLive checks that a second server notices that another one has the socket, and leaves the socket alone.
func TestLive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "s")
	say := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	log := slog.New(slog.DiscardHandler)
	first, err := socket.Open(path, say("first"), log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Open(path, say("second"), log); err == nil || !strings.Contains(err.Error(), "another program may be listening there: stop it, or set state.directory or admin.socket") {
		t.Errorf("the second server: got %v", err)
	}
	answer, err := over(path).Get("http://socket/")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if string(text) != "first" {
		t.Errorf("got %q", text)
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// TestMany has more callers than are served at a time: all of them are answered, and Close waits for none.
func TestMany(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "s")
	s, err := socket.Open(path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			answer, err := over(path).Get("http://socket/")
			if err != nil {
				t.Error(err)
				return
			}
			_ = answer.Body.Close()
		})
	}
	all.Wait()
	var silent []net.Conn
	for range 100 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, conn)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, conn := range silent {
		_ = conn.Close()
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ state, named, want string }{
		{"", "", ""},
		{"/kept", "", "/kept/admin.sock"},
		{"/kept", "/run/x", "/run/x"},
		{"", "/run/x", "/run/x"},
		{"/kept", config.NoSocket, ""},
	} {
		if got := socket.Of(&config.Config{State: config.State{Directory: c.state}, Admin: config.Admin{Socket: c.named}}); filepath.ToSlash(got) != c.want {
			t.Errorf("state %q, socket %q: got %q, want %q", c.state, c.named, got, c.want)
		}
	}
	long := "/" + strings.Repeat("x", listen.MaxPath-1)
	if err := socket.CheckPath(long); err != nil {
		t.Errorf("%d bytes: got %v", len(long), err)
	}
	if err := socket.CheckPath(long + "x"); err == nil || !strings.Contains(err.Error(), "set state.directory or admin.socket to a shorter one") {
		t.Errorf("one byte more: got %v", err)
	}
}
