package nats_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestQuotaOfReplicas lets three replicas fill a space at once: the quota is exact to the byte, and can be used up.
func TestQuotaOfReplicas(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	const each, entries = 60, 100
	quota := state.Usage{Entries: entries, Bytes: entries * (state.Overhead + 6 + 5)}
	var stores []*nats.Store
	for range 3 {
		stores = append(stores, open(t, c, patient))
	}
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for i, s := range stores {
		for caller := range 2 {
			wg.Go(func() {
				space := s.Space("kv/a")
				for n := range each {
					_, err := space.Set(t.Context(), fmt.Sprintf("%d%d/%03d", i, caller, n), []byte("12345"), state.Absent, state.SetOptions{Quota: quota})
					switch {
					case err == nil:
						made.Add(1)
					case errors.Is(err, state.ErrQuota):
						refused.Add(1)
					default:
						t.Error(err)
					}
					if u, err := space.Usage(t.Context()); err != nil || u.Entries > quota.Entries || u.Bytes > quota.Bytes {
						t.Errorf("the space holds %+v, %v", u, err)
					}
				}
			})
		}
	}
	wg.Wait()
	if made.Load() != entries || refused.Load() != 6*each-entries {
		t.Errorf("%d values were set and %d refused, want %d and %d", made.Load(), refused.Load(), entries, 6*each-entries)
	}
}

// TestCountOfReplicas lets replicas count by compare-and-set: no count is lost, and no version is used again after a key was deleted.
func TestCountOfReplicas(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	const each = 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[uint64]bool{}
	for range 3 {
		space := open(t, c, patient).Space("a")
		wg.Go(func() {
			for done := 0; done < each; {
				e, _, err := space.Get(t.Context(), "n", state.MaxValue)
				if err != nil {
					t.Error(err)
					return
				}
				var n int
				fmt.Sscan(string(e.Value), &n)
				version, err := space.Set(t.Context(), "n", fmt.Append(nil, n+1), int64(e.Version), state.SetOptions{})
				if errors.Is(err, state.ErrConflict) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				done++
				mu.Lock()
				if seen[version] {
					t.Errorf("the version %d was used again", version)
				}
				seen[version] = true
				mu.Unlock()
				if other := fmt.Sprint(rand.IntN(5)); done%4 == 0 { // versions count up for the whole space
					if _, err := space.Set(t.Context(), "other/"+other, nil, state.Any, state.SetOptions{}); err != nil {
						t.Error(err)
					}
					if _, err := space.Delete(t.Context(), "other/"+other, state.Any); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	space := open(t, c, patient).Space("a")
	if e, _, err := space.Get(t.Context(), "n", 100); err != nil || string(e.Value) != fmt.Sprint(3*each) {
		t.Errorf("counted %s, %v, want %d", e.Value, err, 3*each)
	}
}

// TestRefusedByTheNewest checks that the leader's data decide whether a write is refused, and not the replica's.
func TestRefusedByTheNewest(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one, other := open(t, c, patient).Space("a"), open(t, c, patient).Space("a")
	for i := range 200 {
		key := fmt.Sprint(i)
		version, err := one.Set(t.Context(), key, []byte("x"), state.Absent, state.SetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Set(t.Context(), key, nil, state.Absent, state.SetOptions{}); !errors.Is(err, state.ErrConflict) {
			t.Fatalf("made twice: %v", err)
		}
		if e, ok, err := other.Get(t.Context(), key, 10); err != nil || !ok || e.Version != version {
			t.Fatalf("after a conflict the version is %d, %t, %v; want %d", e.Version, ok, err, version)
		}
		if deleted, err := other.Delete(t.Context(), key, int64(version)); err != nil || !deleted {
			t.Fatalf("deleted %t, %v", deleted, err)
		}
		if _, err := one.Set(t.Context(), key, nil, state.Absent, state.SetOptions{}); err != nil {
			t.Fatalf("a key that was just deleted elsewhere can't be set: %v", err)
		}
		if deleted, err := other.Delete(t.Context(), key, state.Any); err != nil || !deleted {
			t.Fatalf("a key that was just set elsewhere is not deleted: %t, %v", deleted, err)
		}
	}
}

// TestLargeValues stores values whose sizes are just below and above the limits at which one more part is needed. It replaces each value
// with the others while another replica reads.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	one, other := open(t, c, patient), open(t, c, patient)
	sizes := []int{0, 1, 16 << 10, 16<<10 + 1, 100 << 10, 1<<20 - 8<<10, 1<<20 - 8<<10 + 1, state.MaxValue}
	for i := range 3 * len(sizes) {
		size := sizes[rand.IntN(len(sizes))]
		value := []byte(strings.Repeat(string(rune('a'+i)), size))
		version, err := one.Space("a").Set(t.Context(), "key", value, state.Any, state.SetOptions{})
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		eventually(t, "the other replica has it", func() bool {
			e, ok, err := other.Space("a").Get(t.Context(), "key", state.MaxValue)
			if err != nil && !errors.Is(err, state.ErrUnavailable) { // a busy machine may not answer in time
				t.Fatal(err)
			}
			if ok && e.Version == version && string(e.Value) != string(value) {
				t.Fatalf("%d bytes were read as %d different ones", size, len(e.Value))
			}
			return ok && e.Version == version
		})
	}
	if _, err := one.Space("a").Delete(t.Context(), "key", state.Any); err != nil {
		t.Fatal(err)
	}
	js, _ := raw(t, c)
	stream, err := js.Stream(t.Context(), "KV_toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	if s := stream.CachedInfo().State; s.Bytes > 10_000 {
		t.Errorf("after a key was deleted the bucket has %d bytes in %d messages", s.Bytes, s.Msgs)
	}
}

// raw returns a plain NATS client.
func raw(t testing.TB, c *cluster) (jetstream.JetStream, *client.Conn) {
	t.Helper()
	conn, err := client.Connect(c.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js, conn
}

// TestForeign lets somebody else write to the bucket: messages that are not toolsrv's are ignored, and nothing panics or hangs.
func TestForeign(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	s := open(t, c, patient)
	space := s.Space("a")
	version, err := space.Set(t.Context(), "key", []byte("value"), state.Any, state.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	js, _ := raw(t, c)
	head := "$KV.toolsrv.e.YQ.a2V5" // the subject of "key" in the space "a"
	rubbish := [][]byte{nil, {0}, {1}, {2}, []byte("nothing of the kind"), append([]byte{1}, make([]byte, 12)...), append([]byte{1, 255}, make([]byte, 20)...),
		append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0}, 1, 2, 3), append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 255}, 1), make([]byte, 1<<20-1000)}
	for _, subject := range []string{head, "$KV.toolsrv.e.YQ.%%%", "$KV.toolsrv.e.====", "$KV.toolsrv.e.YQ.a2V5.a.b.c", "$KV.toolsrv.something", "$KV.toolsrv.v.YQ.a2V5.1", "$KV.toolsrv.e.YQ.b3RoZXI"} {
		for _, data := range rubbish {
			if _, err := js.Publish(t.Context(), subject, data); err != nil {
				t.Fatalf("%s: %v", subject, err)
			}
		}
	}
	// A head that claims parts that do not exist.
	if _, err := js.Publish(t.Context(), "$KV.toolsrv.e.YQ.bGllcw", append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, 2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the foreign messages have arrived", func() bool {
		_, ok, err := space.Get(t.Context(), "lies", 10)
		return ok || errors.Is(err, state.ErrTooLarge)
	})
	if e, ok, err := space.Get(t.Context(), "key", state.MaxValue); ok || err != nil {
		t.Errorf("a key that somebody has written over is read as %q, %v", e.Value, err)
	}
	if _, _, err := space.Get(t.Context(), "lies", state.MaxValue); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("reading a value without its parts fails with %v", err)
	}
	if now, err := space.Set(t.Context(), "key", []byte("again"), state.Any, state.SetOptions{}); err != nil || now <= version {
		t.Errorf("set at version %d, %v", now, err)
	}
	keys, _, err := space.List(t.Context(), "", "", 0)
	if err != nil || !slices.Equal(keys, []string{"key", "lies"}) {
		t.Errorf("there are the keys %q, %v", keys, err)
	}
	var log testkit.Log
	again := open(t, c, func(o *nats.Options) { o.Log = log.Logger(slog.LevelInfo) }) // a replica that starts with these messages
	if e, _, err := again.Space("a").Get(t.Context(), "key", state.MaxValue); err != nil || string(e.Value) != "again" {
		t.Errorf("got %q, %v", e.Value, err)
	}
	// The log has a line for each kind of message, and not for each message.
	for range 100 {
		if _, err := js.Publish(t.Context(), "$KV.toolsrv.e.====", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := again.Space("a").Set(t.Context(), "behind", nil, state.Any, state.SetOptions{}); err != nil { // this change comes after all these messages
		t.Fatal(err)
	}
	if foreign, damaged := log.Count("is ignored, since toolsrv does not write such messages"), log.Count("can't be read, and counts as deleted"); foreign != 1 || damaged != 1 || log.Count("level=WARN") != 2 {
		t.Errorf("%d lines of foreign messages, and %d of damaged entries, want one of each:\n%s", foreign, damaged, &log)
	}
}

// TestNewer checks that a bucket with unknown records is not opened.
func TestNewer(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	if _, err := open(t, c, patient).Space("tokens").Set(t.Context(), "key", []byte{9, '{', '}'}, state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := nats.Open(ctx, nats.Options{URL: c.url(), Prefix: "toolsrv", Forms: map[string]byte{"tokens": 8}})
	if !errors.Is(err, state.ErrNewer) {
		t.Errorf("got %v", err)
	}
	if err == nil {
		s.Close()
	}
}

// TestWatchFromElsewhere checks that a replica sees the changes of others, including deleted and expired keys.
func TestWatchFromElsewhere(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one, other := open(t, c, patient).Space("a"), open(t, c, patient).Space("a")
	events := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for e, err := range other.Watch(ctx, "") {
			switch {
			case err != nil:
				return
			case e.Synced:
				events <- "synced"
			default:
				events <- fmt.Sprintf("%s=%s %t", e.Key, e.Value, e.Deleted)
			}
		}
	}()
	want := func(want string) {
		t.Helper()
		if got := <-events; got != want {
			t.Errorf("got the event %q, want %q", got, want)
		}
	}
	want("synced")
	if _, err := one.Set(t.Context(), "key", []byte("1"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	want("key=1 false")
	if _, err := one.Delete(t.Context(), "key", state.Any); err != nil {
		t.Fatal(err)
	}
	want("key= true")
	if _, err := one.Set(t.Context(), "soon", []byte("2"), state.Any, state.SetOptions{TTL: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	want("soon=2 false")
	want("soon= true")
}

// TestManyFollow opens a state that more replicas follow than NATS allows for a stream by default.
func TestManyFollow(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	open(t, c, patient)
	js, _ := raw(t, c)
	for i := range 1100 {
		if _, err := js.CreateConsumer(t.Context(), "KV_toolsrv", jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true}); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
	open(t, c, patient)
}

// TestBucketOfOthers checks that a bucket that another program uses is refused, and one that was made for the state is not.
func TestBucketOfOthers(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	js, _ := raw(t, c)
	orders, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "orders", History: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := orders.PutString(t.Context(), "key", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = nats.Open(t.Context(), nats.Options{URL: c.url(), Prefix: "orders"})
	if err == nil || !strings.Contains(err.Error(), "the bucket orders is in use, and not by toolsrv: name another one with state.prefix") {
		t.Errorf("a bucket that is in use: %v", err)
	}
	if history, err := orders.History(t.Context(), "key"); err != nil || len(history) != 8 {
		t.Errorf("the bucket has %d of 8 revisions, %v", len(history), err)
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "made", History: 1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := open(t, c, func(o *nats.Options) { o.Prefix = "made" })
		if _, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRollup lets somebody publish a message that would remove all others from the bucket.
func TestRollup(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	s := open(t, c, patient)
	if _, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	js, _ := raw(t, c)
	m := client.NewMsg("$KV.toolsrv.e.x")
	m.Header.Set("Nats-Rollup", "all")
	if _, err := js.PublishMsg(t.Context(), m); err == nil {
		t.Error("the bucket is rolled up")
	}
	if _, ok, err := open(t, c, patient).Space("a").Get(t.Context(), "key", 10); !ok || err != nil {
		t.Errorf("the key exists: %t, %v", ok, err)
	}
}
