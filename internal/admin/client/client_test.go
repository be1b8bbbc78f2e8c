package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/trickle"
)

// serve listens until the test ends. It calls answer for each client that has sent the head of a request.
func serve(t *testing.T, network, address string, answer func(net.Conn)) net.Addr {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					answer(conn)
				}
			}()
		}
	}()
	return listener.Addr()
}

// TestSlowServers asks servers that don't answer, or send their answer a byte at a time, or only a part of it. The client gives up on each of them.
func TestSlowServers(t *testing.T) {
	t.Parallel()
	const begin, stall = 300 * time.Millisecond, 200 * time.Millisecond
	drip := func(conn net.Conn, text string) {
		for {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	for name, c := range map[string]struct {
		answer func(net.Conn)
		want   error
		says   string
	}{
		"silent":            {func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, client.ErrNoServer, "doesn't answer within"},
		"an endless header": {func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"); drip(conn, "A: b\r\n") }, client.ErrNoServer, "doesn't answer within"},
		"an endless line":   {func(conn net.Conn) { drip(conn, "H") }, client.ErrNoServer, "doesn't answer within"},
		"one interim answer": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}, client.ErrNoServer, "doesn't answer within"},
		"an answer that stalls": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
			_, _ = io.Copy(io.Discard, conn)
		}, trickle.ErrStalled, "stalled"},
		"a refusal that stalls": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\n{")
			_, _ = io.Copy(io.Discard, conn)
		}, trickle.ErrStalled, "stalled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients := map[string]func() (*client.Client, error){
				"http": func() (*client.Client, error) {
					return client.OverHTTP("http://"+serve(t, "tcp", "127.0.0.1:0", c.answer).String(), "token")
				},
				"socket": func() (*client.Client, error) {
					path := filepath.Join(t.TempDir(), "s")
					serve(t, "unix", path, c.answer)
					return client.OverSocket(path)
				},
			}
			for network, open := range clients {
				asking, err := open()
				if err != nil {
					t.Fatal(err)
				}
				defer asking.Close()
				client.SetPatience(asking, begin, stall)
				for operation, ask := range map[string]func() error{
					"tools": func() error { _, err := asking.Do(t.Context(), "tools", admin.ToolsArguments{}, ""); return err },
					"disable": func() error {
						_, err := asking.Do(t.Context(), "disable", admin.Switched{Names: []string{"a"}}, "")
						return err
					},
					"put": func() error {
						_, err := asking.Put(t.Context(), "put", admin.FileArguments{Name: "a.wasm"}, "", strings.NewReader("x"), 1)
						return err
					},
					"state backup": func() error { return asking.Copy(t.Context(), "state backup", io.Discard) },
				} {
					began := time.Now()
					err := ask()
					if !errors.Is(err, c.want) || err == nil || !strings.Contains(err.Error(), c.says) {
						t.Errorf("%s over %s: got %v, want %q", operation, network, err, c.says)
					}
					if took := time.Since(began); took > time.Minute {
						t.Errorf("%s over %s took %v", operation, network, took)
					}
				}
			}
		})
	}
}

// TestGivenUp has a caller that stops waiting: that is not the server's fault.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	address := serve(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		arrived <- struct{}{}
		_, _ = io.Copy(io.Discard, conn)
	})
	asking, err := client.OverHTTP("http://"+address.String(), "token")
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-arrived; cancel(gone) }()
	if _, err := asking.Do(ctx, "tools", admin.ToolsArguments{}, ""); !errors.Is(err, gone) || errors.Is(err, client.ErrNoServer) {
		t.Errorf("got %v", err)
	}
}
