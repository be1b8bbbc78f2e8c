package session_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/signing"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A hall passes messages between processes.
type hall struct {
	mu    sync.Mutex
	heard map[string][]func([]byte) // by topic
	told  map[string]int
}

func (h *hall) Tell(topic string, message []byte) {
	h.mu.Lock()
	all := h.heard[topic]
	h.told[topic]++
	h.mu.Unlock()
	for _, f := range all {
		f(message)
	}
}

func (h *hall) Hear(topic string, f func([]byte)) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard[topic] = append(h.heard[topic], f)
	return func() {}
}

func newHall() *hall { return &hall{heard: map[string][]func([]byte){}, told: map[string]int{}} }

// pair returns two processes that share their keys and a hall.
func pair(t *testing.T, o mcp.Options) (one, two *house) {
	t.Helper()
	o.Keys, o.Peers = signing.New(), newHall()
	return newApp(t).http(t, o), newApp(t).http(t, o)
}

// A session that began in one process continues in another, with its version, and ends in both.
func TestSessionElsewhere(t *testing.T) {
	t.Parallel()
	one, two := pair(t, mcp.Options{})
	for _, version := range []string{"2025-11-25", "2025-06-18"} {
		r := one.do(t.Context(), http.MethodPost, "", strings.Replace(begin, legacy, version, 1), "X-User", "ann")
		id := r.Header.Get("Mcp-Session-Id")
		s := []string{"X-User", "ann", "Mcp-Session-Id", id}
		for range 3 {
			for i, h := range []*house{two, one} {
				if status, body := h.post(request("1", "tools/call", version, `"name":"math-add"`, `"arguments":{"a":1}`), s...); status != 200 || !strings.Contains(body, `"sum":2`) {
					t.Errorf("%s in process %d: %d %s", version, i, status, body)
				}
			}
		}
		if _, body := two.post(begin, s...); !strings.Contains(body, "begun already") {
			t.Errorf("%s: initialize again: %s", version, body)
		}
		if status, body := two.post(request("1", "resources/list", version), s...); status != 200 || !strings.Contains(body, "Method not found") {
			t.Errorf("%s: %d %s", version, status, body)
		}
		if r := two.do(t.Context(), http.MethodDelete, "", "", s...); r.StatusCode != http.StatusNoContent {
			t.Errorf("%s: DELETE: %d", version, r.StatusCode)
		}
		for i, h := range []*house{one, two} {
			if status, _ := h.post(request("1", "ping", version), s...); status != http.StatusNotFound {
				t.Errorf("%s in process %d after DELETE: %d", version, i, status)
			}
		}
	}
}

// A session continues only with the credential that it began with, even in a process that does not hold it.
func TestSessionOfCredential(t *testing.T) {
	t.Parallel()
	one, two := pair(t, mcp.Options{})
	for _, began := range []string{"", "1"} {
		id := one.begin("X-User", "ann", "X-Credential", began)
		for _, h := range []*house{two, one} {
			for _, shown := range []string{"2", "1", "", "11"} {
				want := http.StatusNotFound
				if shown == began {
					want = http.StatusOK
				}
				if status, body := h.post(request("1", "ping", legacy), "X-User", "ann", "X-Credential", shown, "Mcp-Session-Id", id); status != want {
					t.Errorf("begun with %q, used with %q: %d %s", began, shown, status, body)
				}
			}
		}
	}
}

// A stream in a process where the session did not begin first reports a change, since the client's list may be outdated. The end of the session ends
// the stream, in whichever process it is requested.
func TestStreamElsewhere(t *testing.T) {
	t.Parallel()
	one, two := pair(t, mcp.Options{})
	id := one.begin()
	lines := two.listen(t.Context(), id)
	const changed = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	two.line(lines, "event: message")
	two.line(lines, changed)
	two.put(t, "new")
	two.line(lines, "event: message")
	two.line(lines, changed)
	if r := one.do(t.Context(), http.MethodDelete, "", "", "Mcp-Session-Id", id); r.StatusCode != http.StatusNoContent {
		t.Fatal(r.Status)
	}
	if line, open := <-lines; open {
		t.Errorf("the stream goes on with %q", line)
	}
	own := two.listen(t.Context(), two.begin())
	two.put(t, "newer")
	two.line(own, "event: message")
	two.line(own, changed)
}

// A request with an id that is not valid for it gets the same answer, whatever is wrong with the id, and no memory is held for it.
func TestForgedSessions(t *testing.T) {
	t.Parallel()
	one, two := pair(t, mcp.Options{})
	id := one.begin("X-User", "ann")
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	stranger := newApp(t).http(t, mcp.Options{}) // has other keys
	forged := map[string]string{
		"nothing":                "",
		"one of before":          "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"an id that is too long": id + "A",
		"an id of 10 KB":         strings.Repeat("A", 10<<10),
		"an id cut short":        id[:len(id)-1],
		"half an id":             id[:len(id)/2],
		"zeros":                  base64.RawURLEncoding.EncodeToString(make([]byte, len(raw))),
		"another server's":       stranger.begin("X-User", "ann"),
		"other letters":          strings.Repeat("!", len(id)),
		"bits after the end":     id[:len(id)-1] + string(id[len(id)-1]+1),
		"an id with a blank":     id[:10] + " " + id[11:],
		"in small letters":       strings.ToLower(id),
	}
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		forged["byte "+string(rune('A'+i))] = base64.RawURLEncoding.EncodeToString(changed)
	}
	try := func(h *house, what, user, id, path string) {
		t.Helper()
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			if status, body := read(t, h.do(t.Context(), method, path, request("1", "ping", legacy), "X-User", user, "Mcp-Session-Id", id)); status != http.StatusNotFound || !strings.Contains(body, "There is no such session") {
				t.Errorf("%s: %s: %d %s", what, method, status, body)
			}
		}
	}
	for what, id := range forged {
		try(one, what, "ann", id, "")
		try(two, what, "ann", id, "")
	}
	for _, h := range []*house{one, two} {
		try(h, "another caller's", "eve", id, "")
		try(h, "nobody's", "", id, "")
		try(h, "of another address", "ann", id, "/math")
	}
	if held, _ := two.sessions.State(); held != 0 {
		t.Errorf("%d sessions are held for forged ids", held)
	}
	if status, _ := two.post(request("1", "ping", legacy), "X-User", "ann", "Mcp-Session-Id", id); status != 200 {
		t.Errorf("after all that, the session itself: %d", status)
	}
}

// Messages from other processes about ended sessions take bounded memory, and do no harm.
func TestEndedElsewhere(t *testing.T) {
	t.Parallel()
	o := mcp.Options{Keys: signing.New(), Peers: newHall()}
	h := newApp(t).http(t, o)
	id := h.begin()
	say := func(message string) { o.Peers.Tell("sessions-ended", []byte(message)) }
	for _, message := range []string{"", "x", strings.Repeat("x", 1<<20), id[1:], id + "x"} {
		say(message)
	}
	if status, _ := h.post(request("1", "ping", legacy), "Mcp-Session-Id", id); status != 200 {
		t.Errorf("after garbage: %d", status)
	}
	say(id)
	if status, _ := h.post(request("1", "ping", legacy), "Mcp-Session-Id", id); status != 404 {
		t.Errorf("after it has ended: %d", status)
	}
}

// Many requests resume a session at the same time while others end it: each gets an answer, and at the end nothing is held.
func TestSessionRace(t *testing.T) {
	t.Parallel()
	one, two := pair(t, mcp.Options{Sessions: 4})
	for range 20 {
		id := one.begin()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if status, body := two.post(request("1", "ping", legacy), "Mcp-Session-Id", id); status != 200 && status != 404 && status != 503 && !strings.Contains(body, "session has ended") {
					t.Errorf("%d %s", status, body)
				}
			})
		}
		all.Go(func() { one.do(context.Background(), http.MethodDelete, "", "", "Mcp-Session-Id", id) })
		all.Wait()
	}
	testkit.Until(t, "nothing is held", func() bool { held, _ := two.sessions.State(); return held == 0 })
}

const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`

// A call can be cancelled through any process by its client, and by nobody else.
func TestCancelElsewhere(t *testing.T) {
	t.Parallel()
	peers, keys := newHall(), signing.New()
	app := newApp(t)
	one, two := app.http(t, mcp.Options{Keys: keys, Peers: peers}), newApp(t).http(t, mcp.Options{Keys: keys, Peers: peers})
	id := one.begin("X-User", "ann")
	var calls sync.WaitGroup
	calls.Go(func() {
		one.post(request("7", "tools/call", legacy, `"name":"wait"`), "X-User", "ann", "Mcp-Session-Id", id)
	})
	<-app.waiting
	goesOn := func(after string) {
		t.Helper()
		select {
		case err := <-app.ended:
			t.Fatalf("%s: the call ended: %v", after, err)
		default:
		}
	}
	for _, user := range []string{"eve", ""} { // callers who have learned the id
		if status, _ := two.post(cancelled, "X-User", user, "Mcp-Session-Id", id); status != http.StatusNotFound {
			t.Errorf("%q cancels: %d", user, status)
		}
		goesOn("somebody else has the id")
		own := two.begin("X-User", user)
		two.post(cancelled, "X-User", user, "Mcp-Session-Id", own)
		goesOn("a session of somebody else")
	}
	two.post(cancelled, "X-User", "ann", "Mcp-Session-Id", two.begin("X-User", "ann"))
	goesOn("another session of hers")
	if status, _ := two.post(cancelled, "X-User", "ann", "Mcp-Session-Id", two.begin("X-User", "ann")[1:]+"A"); status != http.StatusNotFound {
		t.Errorf("with an id that was made up: %d", status)
	}
	two.post(strings.Replace(cancelled, "7", `"7"`, 1), "X-User", "ann", "Mcp-Session-Id", id)
	two.post(strings.Replace(cancelled, "7", `8`, 1), "X-User", "ann", "Mcp-Session-Id", id)
	two.post(strings.Replace(cancelled, "7", `"`+strings.Repeat("7", 100<<10)+`"`, 1), "X-User", "ann", "Mcp-Session-Id", id)
	goesOn("other requests of hers")
	for _, message := range []string{"", "x", id, id[1:] + "7", id + " 7", id + "77", id + strings.Repeat("7", 1<<20), strings.Repeat("\x00", 200)} {
		peers.Tell("calls-cancelled", []byte(message))
		goesOn("garbage")
	}
	if status, _ := two.post(cancelled, "X-User", "ann", "Mcp-Session-Id", id); status != http.StatusAccepted {
		t.Errorf("she cancels it elsewhere: %d", status)
	}
	if err := <-app.ended; err == nil {
		t.Error("the call ended without an error")
	}
	calls.Wait()
	if status, _ := one.post(request("1", "ping", legacy), "X-User", "ann", "Mcp-Session-Id", id); status != 200 {
		t.Errorf("the session is gone: %d", status)
	}
}

// A client that cancels without end does not make a process flood the others with messages.
func TestManyCancelled(t *testing.T) {
	t.Parallel()
	peers := newHall()
	h := newApp(t).http(t, mcp.Options{Keys: signing.New(), Peers: peers})
	id := h.begin()
	began := time.Now()
	for range 500 {
		if status, _ := h.post(cancelled, "Mcp-Session-Id", id); status != http.StatusAccepted {
			t.Fatal(status)
		}
	}
	peers.mu.Lock()
	told := peers.told["calls-cancelled"]
	peers.mu.Unlock()
	if most := 16 + int(16*time.Since(began)/time.Second) + 1; told == 0 || told > most {
		t.Errorf("the others got %d messages in %v, want at most %d", told, time.Since(began), most)
	}
}
