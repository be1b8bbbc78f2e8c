package server_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/config"
)

// TestUploadsOfTwo lets one author begin as many uploads as there are places, and finish none of them: another author's file is uploaded at once.
// Proves: Clients keep nobody out
func TestUploadsOfTwo(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	c.Admin.Enabled, c.Admin.Upload = true, true
	for _, name := range []string{"hostile", "other"} {
		c.Auth.Declared = append(c.Auth.Declared, config.Token{Name: name, SHA256: sha256.Sum256([]byte(name)), Scopes: []string{"admin"}})
	}
	r := start(t, c)
	m := &office{model: &model{t: t, running: r}}
	module := m.module()
	const uploads = 8
	answers := make(chan int, uploads)
	for n := range uploads {
		conn, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		head := fmt.Sprintf("POST /admin/v1/put?dry_run=true&name=new/h%d.wasm HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer hostile\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", n, r.Addr(), admin.TakenType, 1<<20) // net/http waits for the rest of a small body before it sends a refusal
		if _, err := io.WriteString(conn, head+module[:len(module)/2]); err != nil {
			t.Fatal(err)
		}
		go func() {
			if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				answers <- answer.StatusCode
				answer.Body.Close()
			}
		}()
	}
	for refused := range uploads / 2 { // the other requests wait for their bodies
		select {
		case status := <-answers:
			if status != http.StatusServiceUnavailable {
				t.Fatalf("got the status %d for a half-sent file", status)
			}
		case <-time.After(patience):
			t.Fatalf("only %d of %d half-sent files were refused", refused, uploads)
		}
	}
	answer, text, _, err := m.exchange("/admin/v1/put?dry_run=true&name=new/other.wasm", "other", module, false, "Content-Type: "+admin.TakenType)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the other author's file: got %v %s, %v", answer, text, err)
	}
}
