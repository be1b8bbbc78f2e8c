package nats_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
)

// TestLosingStream opens a state in streams that would lose parts of the state by themselves, or would not accept all of it.
func TestLosingStream(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	js, _ := raw(t, c)
	for name, test := range map[string]struct {
		change func(c *jetstream.StreamConfig)
		want   string
	}{
		"age":      {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "loses whatever is older than 1h0m0s: set its max-age to 0"},
		"interest": {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, `has the retention "Interest"`},
		"old": {func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 },
			"makes room for new messages by losing old ones: set its discard policy to new"},
		"count": {func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 1000 },
			"makes room for new messages by losing old ones: set its discard policy to new"},
		"small": {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }, "accepts messages of at most 1000 bytes: set its max-msg-size to -1, or to 1048576"},
	} {
		config := jetstream.StreamConfig{Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, AllowDirect: true}
		test.change(&config)
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time, the stream is already marked as toolsrv's
			s, err := nats.Open(t.Context(), nats.Options{URL: c.url(), Prefix: name})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "the stream KV_"+name+" "+test.want) {
				t.Errorf("%s: got %v, want %q", name, err, test.want)
			}
		}
	}
}

// TestStreamChanged lets somebody change the stream of a state while servers use it, so that it loses data. The state is cut off until the stream is
// as before: then the copy has the data that remains.
func TestStreamChanged(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	s := open(t, c, nil)
	space := s.Space("a")
	if _, err := space.Set(t.Context(), "lost", []byte("x"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	js, _ := raw(t, c)
	stream, err := js.Stream(t.Context(), "KV_toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxAge, config.Duplicates = 100*time.Millisecond, 100*time.Millisecond
	config.SubjectDeleteMarkerTTL = 0
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store is cut off", func() bool {
		cut := s.CutOff()
		return cut != nil && strings.Contains(cut.Why.Error(), "loses whatever is older than 100ms")
	})
	if _, err := space.Set(t.Context(), "later", nil, state.Any, state.SetOptions{}); err == nil || !strings.Contains(err.Error(), "set its max-age to 0") {
		t.Errorf("a write: %v", err)
	}
	if _, there, err := space.Get(t.Context(), "lost", 10); !there || err != nil { // the store still serves the values that it has
		t.Errorf("the known key exists: %t, %v", there, err)
	}
	eventually(t, "the stream has lost everything", func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	})
	config.MaxAge = 0
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store is no longer cut off, and lacks what was lost", func() bool {
		keys, _, err := space.List(t.Context(), "", "", 10)
		return s.CutOff() == nil && err == nil && !slices.Contains(keys, "lost")
	})
	if _, err := space.Set(t.Context(), "later", nil, state.Any, state.SetOptions{}); err != nil {
		t.Errorf("a write: %v", err)
	}
}
