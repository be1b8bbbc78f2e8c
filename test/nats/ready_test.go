package nats_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestReady checks a server that is cut off from NATS: it answers calls and is ready, and reports in /readyz and in its metrics that it is cut off.
func TestReady(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	gate := newGate(t, c)
	s := newPeer(t, gate.url())
	cutOff := func() bool {
		code, text := s.ask(t, http.MethodGet, "/readyz", "")
		if code != http.StatusOK {
			t.Errorf("/readyz: %d %s", code, text)
		}
		return strings.Contains(text, `"state":"cut off"`)
	}
	eventually(t, "the server is not cut off", func() bool { return !cutOff() })
	gate.shut()
	eventually(t, "the server says that it is cut off", cutOff)
	if _, text := s.ask(t, http.MethodGet, "/metrics", ""); !strings.Contains(text, "\ntoolsrv_state_cut_off 1\n") {
		t.Errorf("the metrics don't say that the server is cut off")
	}
	if code, text := s.ask(t, http.MethodPost, "/math/add", `{"a": 40, "b": 2}`); code != http.StatusOK || strings.TrimSpace(text) != "42" {
		t.Errorf("a call got %d %s", code, text)
	}
	gate.open()
	eventually(t, "the server is not cut off any more", func() bool { return !cutOff() })
}
