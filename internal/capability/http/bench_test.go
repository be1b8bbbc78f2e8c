package http_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
)

// BenchmarkRequests measures a request over loopback: the only one in a call, which needs a new connection, and one of thirty. A distant service adds
// its round trips: one for a connection, and another for TLS.
func BenchmarkRequests(b *testing.B) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "an answer") })
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	ca := filepath.Join(b.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, test := range []struct {
		name, url string
		requests  int // in a call
	}{
		{"plain/one", plain.URL, 1},
		{"plain/thirty", plain.URL, 30},
		{"TLS/one", secure.URL, 1},
		{"TLS/thirty", secure.URL, 30},
	} {
		b.Run(test.name, func(b *testing.B) {
			g := grant(b, spec{Rule: httpcap.Rule{Granted: []string{test.url}, CA: ca, Requests: 100}})
			for sent := 0; sent < b.N; {
				c := begin(b, g)
				for range min(test.requests, b.N-sent) {
					if in := c.send(b, outgoing{URL: test.url}); in.Status != 200 {
						b.Fatalf("got %s", in.whole)
					}
					sent++
				}
				c.ABI.End()
			}
		})
	}
}
