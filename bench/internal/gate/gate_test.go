package gate_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/gate"
)

// TestGate has an echo server behind a gate: while the gate is shut nothing comes back, and what was sent meanwhile is answered afterwards.
func TestGate(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go io.Copy(conn, conn)
		}
	}()
	g, err := gate.New(echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", g.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write([]byte("said")); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	hears := func(conn net.Conn, within time.Duration) error {
		if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		_, err := io.ReadFull(conn, make([]byte, 4))
		return err
	}
	before := dial()
	if err := hears(before, 10*time.Second); err != nil {
		t.Fatalf("an open gate: %v", err)
	}
	g.Shut()
	g.Shut()
	if _, err := before.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	meanwhile := dial()
	for name, conn := range map[string]net.Conn{"a connection from before": before, "another one": meanwhile} {
		if err := hears(conn, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a shut gate, %s: %v", name, err)
		}
	}
	g.Open()
	g.Open()
	for name, conn := range map[string]net.Conn{"a connection from before": before, "another one": meanwhile} {
		if err := hears(conn, 10*time.Second); err != nil {
			t.Errorf("the gate is open again, %s: %v", name, err)
		}
	}
	g.Shut()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := hears(before, 10*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the gate was closed: %v", err)
	}
}
