package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// figure returns a number that the system reports about the service, such as VmRSS, in KiB.
func (s *service) figure(name string) int64 {
	s.t.Helper()
	for line := range strings.Lines(string(testkit.Read(s.t, "/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
	}
	s.t.Fatalf("the system does not report %s", name)
	return 0
}

// TestWaitingCalls lets 2,000 calls wait for a server. They hold no threads, take at most 200 KiB each including HTTP on both sides, and hold up
// nobody: other calls are answered meanwhile.
// Proves: A service can't use up the host
func TestWaitingCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	const (
		calls = 2000
		most  = 200 // KiB
	)
	if most := account.MachineDescriptors(); most < 3*calls {
		t.Skipf("a process may have only %d descriptors, and each call takes two in the service and two in the test", most)
	}
	var inside sync.WaitGroup
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			inside.Done()
			<-release
		}
	}))
	defer server.Close()
	dir := site(t, "", map[string][]byte{
		"fetch.wasm": needing(t, "fetch", map[string]any{"http": []string{server.URL}}, "size"),
		"shop.wasm":  guest(t, "shop", "1.0.0", "echo"),
	})
	put(t, filepath.Join(dir, "toolsrv.toml"), fmt.Appendf(nil, `
[server]
memory = "2GiB"
[limits]
timeout = "5m"
concurrency = %d
[[grant]]
match = "fetch/*"
http = [%q]
private = ["127.0.0.0/8"]
http_timeout = "5m"
`, calls, server.URL))
	s := start(t, dir)
	call := func(path string) error {
		a, err := s.try(request{method: http.MethodPost, path: "/fetch/size", body: fmt.Sprintf(`{"head":{"method":"GET","url":%q}}`, server.URL+path)})
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		return err
	}
	if err := call("/fast"); err != nil {
		t.Fatal(err)
	}
	resident, threads := s.figure("VmRSS"), s.figure("Threads")
	inside.Add(calls)
	failed := make(chan error, calls)
	for range calls {
		go func() { failed <- call("/slow") }()
	}
	all := make(chan struct{})
	go func() { inside.Wait(); close(all) }()
	select {
	case <-all:
	case err := <-failed:
		t.Fatalf("a call has ended before all had begun: %v", err)
	}
	each, more := (s.figure("VmRSS")-resident)/calls, s.figure("Threads")-threads
	t.Logf("each waiting call takes %d KiB; there are %d more threads than the %d before", each, more, threads)
	if !testkit.Race(t) && each > most {
		t.Errorf("each waiting call takes %d KiB, want %d at most", each, most)
	}
	if more > 50 {
		t.Errorf("there are %d more threads than before", more)
	}
	for range 100 {
		if a := s.post("/shop/echo", order); a.status != http.StatusOK {
			t.Fatalf("while the others wait, a call is answered with %d %s", a.status, a.body)
		}
	}
	close(release)
	for range calls {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}
