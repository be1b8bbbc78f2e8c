package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestFaults lets a page do everything that must fail a test, and checks that each would.
func TestFaults(t *testing.T) {
	t.Parallel()
	const page = `<!doctype html><html lang="en"><title>x</title><body><p id="p" style="color: red">A page</p><script src="/bad.js"></script></body></html>`
	const script = `console.warn("beware"); setTimeout(() => { throw new Error("thrown") });
Promise.reject(new Error("rejected")); fetch("/missing"); fetch("https://elsewhere.example/").catch(() => 0);
setTimeout(() => document.body.append("done"), 100);`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		switch r.URL.Path {
		case "/":
			_, _ = w.Write([]byte(page))
		case "/bad.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(script))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	p := open(t, server.URL, "/")
	p.read("done")
	p.mu.Lock()
	defer p.mu.Unlock()
	all := strings.Join(p.faults, "\n")
	for _, want := range []string{"beware", "Error: thrown", "Error: rejected", "status of 404", "Applying inline style", "elsewhere.example"} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing tells of %q:\n%s", want, all)
		}
	}
	p.faults = nil
}
