package nats_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
)

// A lossy is a proxy to a node. It can lose messages of a consumer unnoticed, and end the connection while another consumer reads.
type lossy struct {
	listener net.Listener

	mu    sync.Mutex
	loses bool           // messages of consumers
	lost  map[string]int // by consumer
	lifts uint64         // the number that is added to the sequence numbers of the stream
	cut   int            // after how many messages of a new consumer the connection ends; 0 means never
	came  map[string]int
	cuts  int
}

func newLossy(t *testing.T, c *cluster) *lossy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	y := &lossy{listener: l, lost: map[string]int{}, came: map[string]int{}}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", c.nodes[0].Addr().String())
			if err != nil {
				from.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(to, from)
				to.Close()
			}()
			go func() {
				y.copy(from, to)
				from.Close()
				to.Close()
			}()
		}
	}()
	return y
}

// copy copies what a node sends.
func (y *lossy) copy(to io.Writer, from io.Reader) {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		var content []byte
		if len(words) > 0 && (words[0] == "MSG" || words[0] == "HMSG") {
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			content = make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(in, content); err != nil {
				return
			}
			passes, ends := y.pass(words)
			if ends {
				return
			}
			if !passes {
				continue
			}
			line = strings.Join(words, " ") + "\r\n"
		}
		if _, err := io.WriteString(to, line); err != nil {
			return
		}
		if _, err := to.Write(content); err != nil {
			return
		}
	}
}

// pass reports whether a message passes. After a lost message, it renumbers later ones so that there is no gap.
func (y *lossy) pass(words []string) (passes, ends bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i, word := range words {
		ack := strings.Split(word, ".") // $JS.ACK, the stream, the consumer, how often, both sequences, the time, what is pending
		if len(ack) != 9 || ack[0] != "$JS" || ack[1] != "ACK" {
			continue
		}
		name := ack[3]
		if y.came[name]++; y.cut > 0 && y.came[name] == y.cut {
			y.cut = 0
			y.cuts++
			return false, true
		}
		if y.loses {
			y.lost[name]++
			return false, false
		}
		sequence, err := strconv.ParseUint(ack[5], 10, 64)
		if err != nil {
			return false, true
		}
		ack[5] = strconv.FormatUint(sequence+y.lifts, 10)
		number, err := strconv.Atoi(ack[6])
		if err != nil {
			return false, true
		}
		ack[6] = strconv.Itoa(number - y.lost[name])
		words[i] = strings.Join(ack, ".")
	}
	return true, false
}

func (y *lossy) set(loses bool, cut int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.loses, y.cut = loses, cut
}

// TestForeignSequence lets a node send a change with a sequence number that the stream never had. Later changes then seem older, so the
// store must not count as complete: otherwise it would keep a revoked token forever.
func TestForeignSequence(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	way := newLossy(t, c)
	s, other := open(t, c, func(o *nats.Options) { o.URL = "nats://" + way.listener.Addr().String() }), open(t, c, nil)
	set := func(value string) {
		t.Helper()
		if _, err := other.Space("a").Set(t.Context(), "key", []byte(value), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lift := func(by uint64) {
		way.mu.Lock()
		defer way.mu.Unlock()
		way.lifts = by
	}
	has := func(value string) func() bool {
		return func() bool {
			e, ok, err := s.Space("a").Get(t.Context(), "key", 10)
			return err == nil && ok && string(e.Value) == value
		}
	}
	set("1")
	eventually(t, "the store has the first change", has("1"))
	lift(1 << 62)
	set("2")
	eventually(t, "the store has the second change", has("2"))
	lift(0)
	set("3")
	eventually(t, "the store is cut off", func() bool { return s.CutOff() != nil })
	if cut := s.CutOff(); cut == nil || !strings.Contains(cut.Why.Error(), "if that lasts, restart toolsrv") {
		t.Errorf("the store is cut off because of %v", cut)
	}
}

// TestReadAnewCut lets a state read everything again because it missed that a key was deleted, and cuts the state off in the middle. The
// state begins to read once more. After that it no longer has the key, although no marker of the key is left.
func TestReadAnewCut(t *testing.T) {
	c := start(t, 1, nil)
	way := newLossy(t, c)
	one, cut := open(t, c, nil), open(t, c, func(o *nats.Options) { o.URL = "nats://" + way.listener.Addr().String() })
	set := func(s *nats.Store, space, key string) error {
		_, err := s.Space(space).Set(t.Context(), key, []byte("value"), state.Any, state.SetOptions{})
		return err
	}
	const keys = 300
	for i := range keys {
		if err := set(one, "a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	has := func(n int64) func() bool {
		return func() bool {
			u, err := cut.Space("a").Usage(t.Context())
			return err == nil && u.Entries == n
		}
	}
	eventually(t, "the state has all keys", has(keys))
	way.set(true, 0)
	if deleted, err := one.Space("a").Delete(t.Context(), "7", state.Any); !deleted || err != nil {
		t.Fatalf("deleted %t, %v", deleted, err)
	}
	eventually(t, "the messages are lost", func() bool {
		way.mu.Lock()
		defer way.mu.Unlock()
		for _, n := range way.lost {
			if n >= 2 {
				return true
			}
		}
		return false
	})
	js, _ := raw(t, c)
	stream, err := js.Stream(t.Context(), "KV_toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.toolsrv.e.YQ."+base64.RawURLEncoding.EncodeToString([]byte("7")))); err != nil {
		t.Fatal(err) // the markers expire, as after an hour
	}
	way.set(false, 0)
	if err := set(one, "b", "key"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the state has the changes after that", func() bool {
		_, ok, err := cut.Space("b").Get(t.Context(), "key", 10)
		return ok && err == nil
	})
	if !has(keys)() {
		t.Fatal("the state did not miss that the key was deleted")
	}
	way.set(false, keys/2)
	eventually(t, "a write is accepted", func() bool { return set(cut, "a", "1") == nil })
	eventually(t, "the state has exactly the existing keys", has(keys-1))
	if _, ok, err := cut.Space("a").Get(t.Context(), "7", 10); ok || err != nil {
		t.Errorf("the deleted key exists: %t, %v", ok, err)
	}
	way.mu.Lock()
	defer way.mu.Unlock()
	if way.cuts != 1 {
		t.Errorf("the state was cut off %d times, want once", way.cuts)
	}
}

// TestForeignTurn lets somebody delete the turn of a space, as with `nats kv del`: the space can still be written.
func TestForeignTurn(t *testing.T) {
	c := start(t, 1, nil)
	s := open(t, c, nil)
	set := func() {
		t.Helper()
		if _, err := s.Space("a").Set(t.Context(), "key", []byte("value"), state.Any, state.SetOptions{}); err != nil {
			t.Error(err)
		}
	}
	set()
	js, _ := raw(t, c)
	kv, err := js.KeyValue(t.Context(), "toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func() error{
		func() error { return kv.Delete(t.Context(), "e.YQ") },
		func() error { _, err := kv.PutString(t.Context(), "e.YQ", "nothing of the kind"); return err },
		func() error { return kv.Delete(t.Context(), "e.YQ.a2V5") },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		set()
	}
	if e, ok, err := open(t, c, nil).Space("a").Get(t.Context(), "key", 10); !ok || err != nil || string(e.Value) != "value" {
		t.Errorf("got %q, %t, %v", e.Value, ok, err)
	}
}
