package otlp

import (
	"errors"
	"testing"
	"time"
)

// TestMissing checks whether the collector counts as missing before, during and after a request.
func TestMissing(t *testing.T) {
	t.Parallel()
	n := &notice{what: "spans"}
	want := func(when string, want bool) {
		t.Helper()
		if got := n.isMissing(); got != want {
			t.Errorf("%s: got %t, want %t", when, got, want)
		}
	}
	want("before", false)
	n.sent(func() error { want("while it is sent", false); return nil })
	n.sent(func() error {
		n.began.Store(time.Now().Add(-late).UnixNano())
		want("when it does not answer", true)
		return nil
	})
	want("after it has answered", false)
	n.sent(func() error { return errors.New("refused") })
	want("after it has refused", true)
	n.sent(func() error { want("while it is tried again", true); return nil })
	want("after it has accepted the retry", false)
}
