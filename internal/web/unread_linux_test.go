package web_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/web"
)

type connKey struct{}

// TestUnreadStreamIsCut sends less than the system would buffer to a client that reads nothing: its stream ends all the same.
// Proves: Clients keep nobody out
func TestUnreadStreamIsCut(t *testing.T) {
	t.Parallel()
	places, ended := web.NewPlaces(16), make(chan error, 1)
	mux := web.NewMux(web.Options{StreamWrite: time.Second, Socket: func(r *http.Request) *net.TCPConn {
		return r.Context().Value(connKey{}).(*net.TCPConn)
	}})
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		leave, err := places.Take(x)
		if err != nil {
			ended <- err
			return
		}
		defer leave()
		ctx := x.StreamEvents()
		if _, err := x.Write(make([]byte, 32<<10)); err != nil {
			ended <- err
			return
		}
		_ = x.FlushError()
		<-ctx.Done()
		ended <- nil
	}))
	server := httptest.NewUnstartedServer(mux)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	server.Start()
	defer server.Close()
	defer mux.EndStreams()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the part did not fit: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the stream of a client that reads nothing goes on")
	}
}
