package main_test

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"syscall"
	"testing"
)

// TestMetricsMove checks that the metrics address passes from one process to the next: it answers during the drain, and again once the next process
// runs, whether a server restarts in place or a second one starts while the first still runs.
func TestMetricsMove(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := site(t, "[metrics]\nenabled = true\naddress = \""+address+"\"\n[state]\ndirectory = \""+t.TempDir()+"\"\n",
		map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	s := start(t, dir)
	// began returns the start time of the process that serves the metrics, or "" if none does.
	began := func() string {
		res, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return ""
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		found := regexp.MustCompile(`(?m)^toolsrv_start_timestamp_seconds (.*)$`).FindSubmatch(body)
		if err != nil || res.StatusCode != http.StatusOK || found == nil {
			t.Fatalf("/metrics: %d %.300s (%v)", res.StatusCode, body, err)
		}
		return string(found[1])
	}
	first := began()
	call := s.waiting("")
	s.signal(syscall.SIGUSR2)
	s.waitLog("handing over")
	if got := began(); got != first {
		t.Errorf("while the drain waits for a call, the metrics are from %q, want %q", got, first)
	}
	if a := <-call; a.status != http.StatusOK {
		t.Errorf("the call got %d %s", a.status, a.body)
	}
	s.waitCount("ready", 2)
	var second string
	s.eventually("the next server serves its metrics", func() bool { second = began(); return second != "" && second != first })

	manager := newSupervisor(t)
	other := activated(t, manager, site(t, "[metrics]\nenabled = true\naddress = \""+address+"\"\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")}), binary, listener(t))
	if got := began(); got != second {
		t.Errorf("while both run, the metrics are from %q, want the first server's", got)
	}
	s.signal(syscall.SIGTERM)
	if code := s.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	other.eventually("the second server serves its metrics", func() bool { got := began(); return got != "" && got != second })
}
