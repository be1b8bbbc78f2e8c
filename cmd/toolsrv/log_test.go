//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestLogIsWhole stops the service right after some requests: the log has a line for each of them, in order, and paths are escaped.
// Proves: Answers and logs show what is meant to be seen
func TestLogIsWhole(t *testing.T) {
	t.Parallel()
	s := start(t, site(t, "", nil), "--log-level", "debug") // otherwise refused requests would only be counted
	const requests = 300
	for n := range requests {
		if a := s.get(fmt.Sprintf("/nowhere/%d-%%E2%%80%%AE%%C2%%9B", n)); a.status != http.StatusNotFound {
			t.Fatalf("got %d", a.status)
		}
	}
	s.signal(syscall.SIGTERM)
	if got := s.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
	next := 0
	for _, text := range s.log.all() {
		if strings.ContainsAny(text, "\u202e\u009b") {
			t.Fatalf("the line %q has control characters", text)
		}
		var line struct{ Msg, Path string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line.Msg == "request" {
			if want := fmt.Sprintf("/nowhere/%d-\u202e\u009b", next); line.Path != want {
				t.Fatalf("line %d is about %q, want %q", next, line.Path, want)
			}
			next++
		}
	}
	if next != requests {
		t.Errorf("the log has %d requests, want %d", next, requests)
	}
	s.waitLog("stopped")
}
