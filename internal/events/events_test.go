package events_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/events"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// tool returns a tool. Tools with the same digest are the same.
func tool(path, digest string) *wasmtools.Tool {
	namespace, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		namespace, name = path[:i], path[i+1:]
	}
	return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "A tool.", Version: "1." + digest, Digest: digest, Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return nil, nil })}
}

func tableOf(tb testing.TB, tools ...*wasmtools.Tool) *wasmtools.RouteTable {
	tb.Helper()
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// principal returns a principal with these scopes. "admin" is the role.
func principal(tb testing.TB, name string, scopes ...string) *wasmtools.Principal {
	tb.Helper()
	var roles, tools []string
	for _, s := range scopes {
		if s == "admin" {
			roles = append(roles, s)
		} else {
			tools = append(tools, s)
		}
	}
	p, err := wasmtools.NewPrincipal(name, "test", tools...)
	if err == nil {
		p, err = p.WithRoles(roles...)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// callers are the callers who may listen, by the header X-Who. Nobody else is let in.
type callers struct {
	mu sync.Mutex
	of map[string]*wasmtools.Principal
}

func (c *callers) Check(*http.Request) error { return nil }

func (c *callers) Principal(r *http.Request, _ *wasmtools.Principal) (*wasmtools.Principal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.of[r.Header.Get("X-Who")]; p != nil {
		return p, nil
	}
	return nil, &wasmtools.Error{Code: wasmtools.CodeUnauthorized}
}

func (c *callers) set(name string, p *wasmtools.Principal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[name] = p
}

// A world is a server with an event door.
type world struct {
	tb      testing.TB
	table   *wasmtools.RouteTable
	log     *events.Log
	callers *callers
	door    *events.Door
	mux     *web.Mux
	url     string
	off     atomic.Bool
}

func newWorld(tb testing.TB, table *wasmtools.RouteTable, places int) *world {
	tb.Helper()
	w := &world{tb: tb, table: table, callers: &callers{of: map[string]*wasmtools.Principal{}}}
	w.log = events.NewLog(table, func(s string) string { return strings.ReplaceAll(s, "hunter2", "[secret]") })
	w.mux = web.NewMux(web.Options{Dependencies: []web.Dependency{w.callers}, StreamWrite: time.Second})
	w.door = events.NewDoor(w.log, events.Options{Places: web.NewPlaces(places), Off: func(*wasmtools.Generation) bool { return w.off.Load() }, Admin: func() bool { return true }})
	w.mux.Mount(events.Path, w.door)
	tb.Cleanup(func() {
		w.log.Close()
		w.log.Close()
		if err := w.mux.Close(); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// serve makes the world answer over HTTP.
func (w *world) serve() *world {
	server := httptest.NewServer(w.mux)
	w.url = server.URL
	w.tb.Cleanup(server.Close)
	w.tb.Cleanup(w.mux.EndStreams) // runs before server.Close, which waits for the streams
	return w
}

// replace replaces the tools of the table.
func (w *world) replace(tools ...*wasmtools.Tool) {
	w.tb.Helper()
	if err := w.table.Replace(tools, nil); err != nil {
		w.tb.Fatal(err)
	}
}

// A stream is the stream of one listener.
type stream struct {
	tb    testing.TB
	lines *bufio.Reader
	leave context.CancelFunc
	id    string // the last one
}

// listen opens a stream. ids are the values of Last-Event-ID.
func (w *world) listen(who string, ids ...string) *stream {
	w.tb.Helper()
	s, status := w.try(who, ids...)
	if status != http.StatusOK {
		w.tb.Fatalf("%s: got %d", who, status)
	}
	return s
}

func (w *world) try(who string, ids ...string) (*stream, int) {
	w.tb.Helper()
	ctx, leave := context.WithCancel(w.tb.Context())
	w.tb.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+events.Path, nil)
	if err != nil {
		w.tb.Fatal(err)
	}
	r.Header.Set("X-Who", who)
	if len(ids) > 0 {
		r.Header["Last-Event-Id"] = ids
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(func() { answer.Body.Close() })
	if got := answer.Header.Get("Content-Type"); answer.StatusCode == http.StatusOK && got != "text/event-stream" {
		w.tb.Fatalf("the type is %s", got)
	}
	return &stream{tb: w.tb, lines: bufio.NewReader(answer.Body), leave: leave}, answer.StatusCode
}

// next returns the next event, as a browser understands it. At the end of the stream, it has no kind.
func (s *stream) next() (e events.Event) {
	s.tb.Helper()
	kind, data := "", ""
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.tb.Logf("the stream ends: %v", err)
			}
			return events.Event{}
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			s.id = value
		case "event":
			kind = value
		case "data":
			data += value
		case "retry", ":":
		case "":
			if data == "" { // a position
				continue
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil || e.Kind != kind || e.ID != s.id {
				s.tb.Fatalf("%s, %s: %s (%v)", s.id, kind, data, err)
			}
			return e
		default:
			s.tb.Fatalf("an odd line %q", line)
		}
	}
}

// begun waits until the stream has begun.
func (s *stream) begun() *stream {
	s.tb.Helper()
	for s.id == "" {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			s.tb.Fatal(err)
		}
		s.id, _ = strings.CutPrefix(strings.TrimSuffix(line, "\n"), "id: ")
		if !strings.HasPrefix(line, "id: ") {
			s.id = ""
		}
	}
	return s
}

// said returns an event in a few words.
func said(e events.Event) string {
	about := e.Tool + e.File
	if e.Audit != nil {
		about = e.Audit.Action
	}
	return strings.Join(strings.Fields(fmt.Sprint(e.Kind, " ", about, " ", e.State, " ", e.Version, " ", e.Reason)), " ")
}

// expect checks that the next events are these.
func (s *stream) expect(want ...string) {
	s.tb.Helper()
	for _, want := range want {
		if got := said(s.next()); got != want {
			s.tb.Fatalf("got %q, want %q", got, want)
		}
	}
}

// TestEvents checks the events when tools are added, changed, switched and removed, and when files are refused.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tableOf(t, tool("math/add", "a")), 10).serve()
	w.callers.set("all", principal(t, "all", "*"))
	w.callers.set("admin", principal(t, "boss", "admin"))
	all, admin := w.listen("all").begun(), w.listen("admin").begun()
	lacks := tool("math/sub", "b")
	lacks.Missing = []wasmtools.Missing{{Capability: "kv"}}
	w.replace(tool("math/add", "a"), lacks) // a reload makes all tools again
	w.replace(tool("math/add", "c"), lacks)
	if err := errors.Join(w.table.Disable("/math", "being repaired: hunter2"), w.table.Disable("/math", "being repaired"), w.table.Enable("/math/add")); err != nil {
		t.Fatal(err)
	}
	if err := w.table.Replace(nil, []wasmtools.Refusal{{Source: "/srv/a.wasm", Err: errors.New("hunter2 is bad")}}); err != nil {
		t.Fatal(err)
	}
	for _, why := range []string{"hunter2 is bad", "other"} {
		if err := w.table.Replace(nil, []wasmtools.Refusal{{Source: "/srv/a.wasm", Err: errors.New(why)}}); err != nil {
			t.Fatal(err)
		}
	}
	w.log.AddAudit(audit.Record{Entry: audit.Entry{Action: "tokens.add", Who: "boss"}})
	w.replace(tool("last", ""))
	tools := []string{
		"tool.added /math/sub not_granted 1.b not granted: kv", "tool.changed /math/add enabled 1.c",
		"tool.switched /math/add disabled 1.c being repaired: [secret]", "tool.switched /math/sub disabled 1.b being repaired: [secret]",
		"tool.switched /math/add disabled 1.c being repaired", "tool.switched /math/sub disabled 1.b being repaired",
		"tool.switched /math/add enabled 1.c", "tool.removed /math/add", "tool.removed /math/sub",
	}
	all.expect(append(tools, "tool.added /last enabled 1.")...)
	admin.expect(append(tools, "file.refused /srv/a.wasm [secret] is bad", "file.refused /srv/a.wasm other", "audit tokens.add", "tool.added /last enabled 1.", "file.cleared /srv/a.wasm")...)
	w.mux.EndStreams()
	for _, s := range []*stream{all, admin} {
		if e := s.next(); e.Kind != "" {
			t.Errorf("after the end: got %+v", e)
		}
	}
}

// TestHidden compares two servers, one of which has many events that the listeners must not see: the listeners can't tell the servers apart.
// Proves: A caller reaches its own tools only
func TestHidden(t *testing.T) {
	t.Parallel()
	var got [2]string
	for i := range got {
		w := newWorld(t, tableOf(t, tool("math/add", "a"), tool("web/get", "a")), 10).serve()
		w.callers.set("math", principal(t, "math", "math/*"))
		w.callers.set("none", principal(t, "none"))
		hide := func() {
			if i == 0 {
				return
			}
			for n := range 50 {
				w.replace(tool("math/add", "a"), tool(fmt.Sprintf("web/get%d", n), "b"))
				w.log.AddAudit(audit.Record{Entry: audit.Entry{Action: "tokens.add"}})
			}
			w.replace(tool("math/add", "a"), tool("web/get", "a"))
		}
		math, none := w.listen("math").begun(), w.listen("none").begun()
		first := math.id
		if other := w.listen("math").begun().id; len(other) != len(first) || other == first {
			t.Errorf("%q and %q are ids of the same position, want the same length, but different ids", first, other)
		}
		var all []string
		for range 3 {
			hide()
			if err := errors.Join(w.table.Disable("/math/add", ""), w.table.Enable("/math/add")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				e := math.next()
				if len(e.ID) != len(first) {
					t.Errorf("the id of an event is %q, and that of a position is %q, want the same length", e.ID, first)
				}
				all = append(all, said(e))
			}
		}
		w.mux.EndStreams()
		for _, s := range []*stream{math, none} {
			all = append(all, said(s.next()))
		}
		got[i] = strings.Join(all, "\n")
	}
	if got[0] != got[1] {
		t.Errorf("with hidden events:\n%s\nwithout:\n%s", got[1], got[0])
	}
}

// TestResume checks that a stream continues from an id, or says that it can't.
func TestResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tableOf(t, tool("a", "a")), 100).serve()
	w.callers.set("all", principal(t, "all", "*"))
	place := w.listen("all").begun().id
	other := newWorld(t, tableOf(t), 10).serve()
	other.callers.set("all", principal(t, "all", "*"))
	foreign := other.listen("all").begun().id
	w.replace(tool("a", "b"))
	w.replace(tool("a", "c"))
	s := w.listen("all", place)
	first := s.next()
	s.expect("tool.changed /a enabled 1.c")
	for name, test := range map[string]struct {
		ids  []string
		want string
	}{
		"a place":                           {[]string{place}, "tool.changed /a enabled 1.b"},
		"an event":                          {[]string{first.ID}, "tool.changed /a enabled 1.c"},
		"the last one":                      {[]string{s.id}, "tool.added /end enabled 1."},
		"none":                              {nil, "tool.added /end enabled 1."},
		"an empty one":                      {[]string{""}, "tool.added /end enabled 1."},
		"two":                               {[]string{first.ID, first.ID}, "reset"},
		"two empty ones":                    {[]string{"", ""}, "reset"},
		"another run's":                     {[]string{foreign}, "reset"},
		"a number":                          {[]string{"1"}, "reset"},
		"negative":                          {[]string{"-1"}, "reset"},
		"larger than any":                   {[]string{"18446744073709551616"}, "reset"},
		"cut":                               {[]string{first.ID[:21]}, "reset"},
		"longer":                            {[]string{first.ID + "A"}, "reset"},
		"with padding":                      {[]string{first.ID + "=="}, "reset"},
		"changed":                           {[]string{"AAAA" + first.ID[4:]}, "reset"},
		"an id written in another way":      {[]string{first.ID[:21] + "_"}, "reset"},
		"an invalid id of the right length": {[]string{strings.Repeat("A", 22)}, "reset"},
		"invisible":                         {[]string{strings.Repeat("\u00a0", 11)}, "reset"},
		"long":                              {[]string{strings.Repeat("a", 500<<10)}, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.listen("all", test.ids...)
			if test.want == "tool.added /end enabled 1." {
				s.begin()
				w.replace(tool("a", "c"), tool("end", ""))
				defer w.replace(tool("a", "c"))
			}
			e := s.next()
			if got := said(e); got != test.want && !(test.want == "reset" && e.Kind == "reset" && e.Reason != "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
			s.leave()
		})
	}
}

// begin reads the line with which every stream begins.
func (s *stream) begin() {
	s.tb.Helper()
	if line, err := s.lines.ReadString('\n'); !strings.HasPrefix(line, "retry: ") {
		s.tb.Fatalf("got %q (%v)", line, err)
	}
}

// TestOld continues streams from two ids. After the first id, all events are still kept. The second id is one event older, so the stream says that
// events may be missing.
func TestOld(t *testing.T) {
	t.Parallel()
	const kept = 10_000
	w := newWorld(t, tableOf(t, tool("a", "a")), 10).serve()
	w.callers.set("all", principal(t, "all", "*"))
	tooOld := w.listen("all").begun().id
	w.replace(tool("a", "0"))
	within := w.listen("all").begun().id
	for n := range kept {
		w.replace(tool("a", fmt.Sprint(n+1)))
	}
	s := w.listen("all", within)
	for n := range kept {
		if got, want := said(s.next()), fmt.Sprintf("tool.changed /a enabled 1.%d", n+1); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	if e := w.listen("all", tooOld).next(); e.Kind != "reset" {
		t.Errorf("got %s", said(e))
	}
}

// TestForeignText checks that texts of files and operators can't become anything but the text of an event.
func TestForeignText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tableOf(t, tool("a", "a")), 10).serve()
	w.callers.set("admin", principal(t, "boss", "admin", "*"))
	s := w.listen("admin").begun()
	bad := "a\n\nevent: tool.removed\ndata: {}\r\r\u2028\u2029\x00\xff</script>" + strings.Repeat("\n", 1<<20)
	if err := w.table.Disable("/a", bad); err != nil {
		t.Fatal(err)
	}
	odd := tool("a", "b")
	odd.Version = bad
	if err := w.table.Replace([]*wasmtools.Tool{odd}, []wasmtools.Refusal{{Source: bad, Err: errors.New(bad)}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tool.switched", "tool.changed", "file.refused"} {
		e := s.next()
		text, err := json.Marshal(e)
		if e.Kind != want || len(text) > 64<<10 || err != nil {
			t.Errorf("got %s of %d bytes (%v), want %s", e.Kind, len(text), err, want)
		}
	}
}

// TestPlaces checks that one caller can take half of the places, and that callers together can take all.
// Proves: Clients keep nobody out
func TestPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tableOf(t), 5).serve()
	for _, name := range []string{"a", "b"} {
		w.callers.set(name, principal(t, name))
	}
	var open []*stream
	for range 3 {
		open = append(open, w.listen("a").begun())
	}
	if _, status := w.try("a"); status != http.StatusServiceUnavailable {
		t.Errorf("one more stream of the same caller: got %d", status)
	}
	for range 2 {
		w.listen("b").begun()
	}
	if _, status := w.try("b"); status != http.StatusServiceUnavailable {
		t.Errorf("one more stream in total: got %d", status)
	}
	open[0].leave()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, status := w.try("b"); status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the place of a caller that has gone is not free")
		}
	}
	if _, status := w.try("nobody"); status != http.StatusUnauthorized {
		t.Errorf("a caller that is not let in: got %d", status)
	}
}
