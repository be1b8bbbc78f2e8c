package oci

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestStall has an answer begin, and not go on. A client waits for none that does not come.
func TestStall(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	}))
	t.Cleanup(s.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	client := &http.Client{Transport: &guard{base: base, plain: true, stall: 20 * time.Millisecond}}
	answer, err := client.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if content, err := io.ReadAll(answer.Body); !errors.Is(err, errStalled) || string(content) != "begun" {
		t.Errorf("got %q, %v", content, err)
	}
}
