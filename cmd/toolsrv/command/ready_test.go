package command_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReady(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", status(http.StatusOK))
	mux.HandleFunc("GET /tools/readyz", status(http.StatusOK))
	mux.HandleFunc("GET /busy/readyz", status(http.StatusServiceUnavailable))
	mux.HandleFunc("GET /elsewhere/readyz", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/readyz", http.StatusFound) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	gone := httptest.NewServer(mux)
	gone.Close()
	for name, c := range map[string]struct {
		args []string
		code int
		want string // in the output
	}{
		"ready":                  {[]string{s.URL}, 0, "ready\n"},
		"with a slash":           {[]string{s.URL + "/"}, 0, "ready\n"},
		"below a path":           {[]string{s.URL + "/tools"}, 0, "ready\n"},
		"not ready":              {[]string{s.URL + "/busy"}, 1, "503 Service Unavailable"},
		"another server":         {[]string{s.URL + "/nothing"}, 1, "404 Not Found"},
		"a redirect":             {[]string{s.URL + "/elsewhere"}, 1, "302 Found"},
		"nobody listens":         {[]string{gone.URL}, 1, "refused"},
		"another protocol there": {[]string{strings.Replace(s.URL, "http:", "https:", 1)}, 1, "ask https:"},
		"no scheme":              {[]string{"localhost:8000"}, 2, "not the address of a server"},
		"a file":                 {[]string{"file:///etc/passwd"}, 2, "not the address of a server"},
		"a query":                {[]string{s.URL + "?x=1"}, 2, "not the address of a server"},
		"two":                    {[]string{s.URL, s.URL}, 2, "at most 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"ready"}, c.args...)...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("exit code %d, %q %q; want %d, and %q in it", code, stdout, stderr, c.code, c.want)
			}
		})
	}
}

// TestNotHTTP points commands at a service of the machine that does not speak HTTP: they don't show its answer.
func TestNotHTTP(t *testing.T) {
	t.Setenv("TOOLSRV_TOKEN", adminToken)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
			_, _ = io.WriteString(conn, "220 hunter2 ready\r\n")
			conn.Close()
		}
	}()
	at := listener.Addr().String()
	for _, args := range [][]string{
		{"ready", "http://" + at}, {"status", "--server", "http://" + at}, {"tools", "--server", "http://" + at}, {"search", "oci://" + at + "/acme/csv"},
		{"pull", "oci://" + at + "/acme/csv:1", "-o", "-"}, {"verify", "oci://" + at + "/acme/csv:1"},
	} {
		code, stdout, stderr := run(args...)
		if code == 0 || stdout != "" || strings.Contains(stderr, "hunter2") || strings.Contains(stderr, "malformed") {
			t.Errorf("%q: exit code %d, %q %q", args, code, stdout, stderr)
		}
	}
}
