package oci

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/trickle"
)

// TestStall reads an answer that stalls after its beginning. Package trickle ends it, and the guard's error also says that the registry is too
// slow.
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
	if content, err := io.ReadAll(answer.Body); !errors.Is(err, ErrSlow) || !errors.Is(err, trickle.ErrStalled) || string(content) != "begun" {
		t.Errorf("got %q, %v", content, err)
	}
}
