package nats_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
)

// TestReadAnewFromBehind opens states while a node is behind: the node has keys that were deleted so long ago that their markers have expired. It
// catches up while the states read: none of them ever has a deleted key.
func TestReadAnewFromBehind(t *testing.T) {
	t.Parallel()
	c, between := startGated(t)
	js, _ := raw(t, c)
	s := open(t, c, nil)
	space := s.Space("a")
	const keys = 300
	each := func(do func(key string) error) {
		t.Helper()
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				if err := do(fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	each(func(key string) error {
		_, err := space.Set(t.Context(), key, []byte("value"), state.Any, state.SetOptions{})
		return err
	})
	info := func() *jetstream.StreamInfo {
		t.Helper()
		var info *jetstream.StreamInfo
		eventually(t, "the bucket has a leader", func() bool {
			stream, err := js.Stream(t.Context(), "KV_toolsrv")
			if err == nil && stream.CachedInfo().Cluster.Leader != "" {
				info = stream.CachedInfo()
			}
			return info != nil
		})
		return info
	}
	eventually(t, "all nodes have all keys", func() bool {
		all := 0
		for _, r := range info().Cluster.Replicas {
			if r.Current && r.Lag == 0 {
				all++
			}
		}
		return all == 2
	})
	behind := 0
	for c.nodes[behind].Name() == info().Cluster.Leader || c.nodes[behind].JetStreamIsLeader() {
		behind++
	}
	hold := func(subjects *regexp.Regexp) {
		for _, g := range between[c.nodes[behind].Name()] {
			g.held.Store(subjects)
		}
	}
	hold(regexp.MustCompile(`^\$NRG\.[A-Z]+\.S-`)) // the messages that a stream's nodes send each other
	each(func(key string) error {
		_, err := space.Delete(t.Context(), key, state.Any)
		return err
	})
	stream, err := js.Stream(t.Context(), "KV_toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.toolsrv.e.YQ.*")); err != nil { // the markers expire, as after an hour
		t.Fatal(err)
	}
	// When a node stops, it keeps only its data, and drops its log of changes. After that, it can send another node only
	// the data.
	for i := range c.nodes {
		if i != behind {
			c.stop(i)
			c.run(t, i)
			c.wait(t)
			eventually(t, "something can be written", func() bool {
				_, err := s.Space("b").Set(t.Context(), "key", nil, state.Any, state.SetOptions{})
				return err == nil
			})
		}
	}
	of := func(node int) (bucket server.StreamDetail) { // the node's own view of the stream
		all, err := c.nodes[node].Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all.AccountDetails {
			for _, s := range a.Streams {
				if s.Name == "KV_toolsrv" {
					bucket = s
				}
			}
		}
		return bucket
	}
	if n := of(behind).State.Msgs; n < keys {
		t.Fatalf("the node that is behind has %d messages", n)
	}
	var opened []*nats.Store
	for range 12 {
		begun := nats.Begin(nats.Options{URL: c.url(), Prefix: "toolsrv", Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))})
		t.Cleanup(func() { begun.Close() })
		opened = append(opened, begun)
	}
	eventually(t, "some state reads from the node, or all states are open", func() bool {
		for _, o := range opened {
			if o.CutOff() != nil {
				return len(of(behind).Consumer) > 0
			}
		}
		return true
	})
	hold(nil)
	for i, o := range opened {
		if err := o.Wait(t.Context()); err != nil {
			t.Fatalf("opening the state %d: %v", i, err)
		}
	}
	began := time.Now()
	check := func() {
		t.Helper()
		for i, o := range opened {
			if u, err := o.Space("a").Usage(t.Context()); err != nil || u.Entries != 0 {
				t.Errorf("after %v, the state %d has %d deleted keys, %v", time.Since(began), i, u.Entries, err)
			}
		}
	}
	check()
	eventually(t, "the node has caught up", func() bool { return of(behind).State.Msgs < keys })
	check()
}
