package nats_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state/nats"
)

// A counted put sends an object of ten chunks through a gate, which counts the messages and loses some of them.
type counted struct {
	mu     sync.Mutex
	sent   map[string]int
	chunks int
	reply  string // the subject at which the put of the object's name is confirmed
}

// asks returns the function that decides for a gate which messages pass. lose reports whether a message is lost, given its subject and the number n of messages of its kind so far.
func (l *counted) asks(lose func(kind string, n int) bool) *func(words []string) bool {
	l.sent = map[string]int{}
	kinds := map[string]int{}
	asks := func(words []string) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		kind := ""
		switch subject := words[1]; {
		case strings.HasPrefix(subject, "$O.toolsrv_tools.C."):
			kind = "chunk"
			l.chunks++
			l.sent[subject]++
		case strings.HasPrefix(subject, "$O.toolsrv_tools.M."):
			kind, l.reply = "name", words[2]
		case subject == "$JS.API.STREAM.INFO.OBJ_toolsrv_tools":
			kind = "question"
		case subject == l.reply:
			kind = "confirmation"
		default:
			return true
		}
		kinds[kind]++
		return !lose(kind, kinds[kind])
	}
	return &asks
}

// TestPutLosesPart loses one message of a put, as can happen when the leader changes: the object is stored whole all the same, and nothing remains of
// what was sent before.
func TestPutLosesPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind  string
		n     int
		sends int // chunks
	}{{"question", 1, 10}, {"chunk", 1, 20}, {"chunk", 5, 20}, {"chunk", 10, 20}, {"name", 1, 10}, {"confirmation", 1, 10}} {
		t.Run(fmt.Sprint(test.kind, test.n), func(t *testing.T) {
			t.Parallel()
			c := start(t, 1, nil)
			gate := newGate(t, c)
			objects := open(t, c, func(o *nats.Options) { o.URL = gate.url() }).Objects("tools")
			var l counted
			gate.asks.Store(l.asks(func(kind string, n int) bool { return kind == test.kind && n == test.n }))
			content := make([]byte, 10*128<<10)
			_, _ = rand.Read(content)
			began := time.Now()
			if err := objects.Put(t.Context(), "object", bytes.NewReader(content)); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			l.mu.Lock()
			if l.chunks != test.sends {
				t.Errorf("%d chunks were sent, want %d", l.chunks, test.sends)
			}
			l.mu.Unlock()
			got, err := objects.Get(t.Context(), "object", int64(len(content)))
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if read, err := io.ReadAll(got); err != nil || !bytes.Equal(read, content) {
				t.Errorf("got %d bytes that differ from those that were put, or the error %v", len(read), err)
			}
			store, js := objectsOf(t, c)
			stream, err := js.Stream(t.Context(), "OBJ_toolsrv_tools")
			if err != nil {
				t.Fatal(err)
			}
			info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("$O.toolsrv_tools.C.>"))
			if err != nil || len(info.State.Subjects) != 1 || info.State.Msgs != 11 {
				t.Errorf("there are %d messages, the chunks under %v; %v", info.State.Msgs, info.State.Subjects, err)
			}
			if test.kind == "confirmation" && info.State.LastSeq != 11 {
				t.Errorf("the name was stored twice")
			}
			if read, err := store.GetBytes(t.Context(), "object"); err != nil || !bytes.Equal(read, content) { // whose library checks the object's size and digest
				t.Errorf("another client reads %d bytes, %v", len(read), err)
			}
		})
	}
}

// TestPutSlow puts an object through a network so slow that the put takes longer than the timeout for a single message: the object is sent
// only once.
func TestPutSlow(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	gate := newGate(t, c)
	objects := open(t, c, func(o *nats.Options) { o.URL = gate.url() }).Objects("tools")
	var l counted
	gate.asks.Store(l.asks(func(kind string, _ int) bool {
		if kind == "chunk" {
			time.Sleep(600 * time.Millisecond)
		}
		return false
	}))
	began := time.Now()
	if err := objects.Put(t.Context(), "object", bytes.NewReader(make([]byte, 10*128<<10))); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 6*time.Second {
		t.Errorf("the put took only %v", took)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chunks != 10 || len(l.sent) != 1 {
		t.Errorf("%d chunks were sent under %d names", l.chunks, len(l.sent))
	}
}
