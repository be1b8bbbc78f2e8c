package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/cmd/toolsrv/command"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestLogs shows the log and the events of a server, filtered and followed, without a secret in it.
func TestLogs(t *testing.T) {
	t.Parallel()
	m := manage(t, "[secrets]\nfiles = {key = \"key\"}\n[[grant]]\nmatch = \"weather/*\"\nkv = \"1MiB\"\nsettings = {units = \"metric\"}\nhttp = [\"https://api.example.com\"]\nsecrets = [\"key\"]\n")
	call := func(body string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+"/shop/echo?"+managedSecret, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+adminToken)
		q.Header.Set("X-Request-Id", managedSecret)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	call(`{"item":"x"}`)
	m.must(t, "disable", "shop/wait", "--reason", "it rains")
	m.must(t, "status")
	for _, c := range []struct {
		args             string
		has, lacks       string
		noLines, aSingle bool
	}{
		{args: "logs --last 1000", has: "path=/shop/echo", lacks: managedSecret},
		{args: "logs --tool shop/echo", has: "client=127.0.0.1", lacks: "broken.wasm"},
		{args: "logs --tool shop/echo --principal ann", has: "principal=ann"},
		{args: "logs --principal nobody", noLines: true},
		{args: "logs --level warn", has: "file refused", lacks: "INFO"},
		{args: "logs --level error --tool shop/*", noLines: true},
		{args: "logs --tool shop/echo --last 1", aSingle: true, has: "request"},
		{args: "logs --last 1000", has: "operation=\"admin disable\"", lacks: "admin status"}, // reading the log adds no lines
		{args: "events", has: "audit disable /shop/wait by uid"},
		{args: "events", has: "tool.switched /shop/wait 1.2.3 disabled: it rains"},
		{args: "events", has: "tool.added /shop/echo", lacks: managedSecret},
		{args: "events", has: "broken.wasm: "},
		{args: "events --tool shop/*", has: "tool.added /shop/refuse 1.2.3 enabled", lacks: "weather"},
		{args: "events --tool nothing", noLines: true},
		{args: "events --last 1", aSingle: true},
		{args: "refused", has: "broken.wasm", lacks: "shop.wasm"},
	} {
		shown := m.must(t, strings.Fields(c.args)...)
		n := strings.Count(shown, "\n")
		if !strings.Contains(shown, c.has) || c.lacks != "" && strings.Contains(shown, c.lacks) || c.noLines && n > 0 || c.aSingle && n != 1 {
			t.Errorf("%s: got\n%s", c.args, shown)
		}
	}

	// A follower gets new lines, over HTTP and over the socket.
	over, err := client.OverSocket(m.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	ask := func(in admin.EventsArguments) (e admin.Events) {
		t.Helper()
		answer, err := over.Do(t.Context(), "events", in, "")
		if err == nil {
			err = answer.Into(&e)
		}
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	last := ask(admin.EventsArguments{Limit: 1}).Last
	came := make(chan admin.Events, 1)
	go func() { came <- ask(admin.EventsArguments{After: last, Wait: 10}) }()
	testkit.Put(t, m.tools(), "new.wasm", "not a module either")
	next := <-came
	if len(next.Events) != 1 || next.Events[0].Kind != "file.refused" || !strings.HasSuffix(next.Events[0].File, "new.wasm") || next.Events[0].Reason == "" || next.Missed {
		t.Errorf("got %+v", next)
	}
	reader := m.must(t, "tokens", "add", "reader", "--scope", "admin:read", "--json")
	var made admin.TokenMade
	if err := json.Unmarshal([]byte(reader), &made); err != nil {
		t.Fatal(err)
	}
	outside, err := client.OverHTTP(m.url, made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	revoked := make(chan error, 1)
	go func() {
		var err error
		for after := last; err == nil; { // the audit entry is written before the change
			var answer *client.Answer
			if answer, err = outside.Do(t.Context(), "events", admin.EventsArguments{After: after, Wait: 10}, ""); err == nil {
				var page admin.Events
				err = answer.Into(&page)
				after = page.Last
			}
		}
		revoked <- err
	}()
	m.must(t, "tokens", "revoke", "reader")
	if failed, ok := errors.AsType[*wasmtools.Error](<-revoked); !ok || failed.Code != wasmtools.CodeUnauthorized {
		t.Errorf("a follower whose token is revoked: got %v", failed)
	}
	next.Last = ask(admin.EventsArguments{Limit: 1}).Last
	if none := ask(admin.EventsArguments{After: next.Last, Wait: 1}); len(none.Events) != 0 || none.Missed {
		t.Errorf("got %+v", none)
	}
	for after, n := 0, 0; n < 3; n++ { // a request to follow is not itself reported to the follower
		answer, err := over.Do(t.Context(), "logs", admin.LogsArguments{After: after, Wait: 1, Limit: 1000}, "")
		var page admin.Logs
		if err == nil {
			err = answer.Into(&page)
		}
		if err != nil || n > 0 && len(page.Lines) > 0 {
			t.Errorf("got %+v, %v", page.Lines, err)
		}
		after = page.Last
	}
	var refusals admin.Refusals
	if err := json.Unmarshal([]byte(m.must(t, "refused", "--json")), &refusals); err != nil || len(refusals.Refused) != 2 || refusals.Refused[1].What != filepath.Join(m.tools(), "new.wasm") {
		t.Errorf("got %+v, %v", refusals, err)
	}
}

// TestFollow follows events and log lines across a restart of the server.
func TestFollow(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	// follow runs a command until nobody reads its output.
	var following sync.WaitGroup
	var readers []io.Closer
	follow := func(args ...string) (next func(want string)) {
		from, to := io.Pipe()
		following.Go(func() {
			command.Main(append(args, "--follow", "--config", m.config), strings.NewReader(""), to, io.Discard)
			_ = to.CloseWithError(io.EOF)
		})
		lines := bufio.NewReader(from)
		readers = append(readers, from)
		return func(want string) {
			t.Helper()
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("%v ends: %v", args, err)
				}
				if strings.Contains(line, want) {
					return
				}
			}
		}
	}
	news, programs, logs := follow("events", "--tool", "shop/*"), follow("events", "--json"), follow("logs")
	m.must(t, "disable", "shop/refuse", "--reason", "first")
	news(`tool.switched /shop/refuse 1.2.3 disabled: first`)
	programs(`"kind":"audit"`)
	programs(`"tool":"/shop/refuse","state":"disabled"`)
	logs("tools switched")
	m.stop()
	m.start(t)
	news("(events may have been missed)")
	programs(`{"missed":true}`)
	logs("listening")
	m.must(t, "enable", "shop/refuse")
	news("tool.switched /shop/refuse 1.2.3 enabled")
	programs(`"tool":"/shop/refuse","state":"enabled"`)
	logs("tools switched")
	if code, _, stderr := run("events", "--follow", "--tool", "a b", "--config", m.config); code != 3 {
		t.Errorf("an invalid pattern: got %d, %s", code, stderr)
	}
	for _, r := range readers {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	m.must(t, "disable", "shop/echo") // the commands end when nobody reads their output
	following.Wait()
}

// TestFollowNobody checks that a follower doesn't wait for a server that has never answered.
func TestFollowNobody(t *testing.T) {
	t.Parallel()
	file := testkit.Put(t, t.TempDir(), "toolsrv.toml", managedConfig)
	for _, name := range []string{"events", "logs"} {
		if code, _, stderr := run(name, "--follow", "--config", file); code == 0 || !strings.Contains(stderr, "no server answers") {
			t.Errorf("%s: got %d, %s", name, code, stderr)
		}
	}
}

// TestFollowers checks that one token can't keep other callers from following the log, and callers over HTTP can't keep out those over the socket. A
// follower for whom there is no place is told so once, and gets one as soon as it is free.
func TestFollowers(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	outside := func(name string) *client.Client {
		var made admin.TokenMade
		if err := json.Unmarshal([]byte(m.must(t, "tokens", "add", name, "--scope", "admin:read", "--json")), &made); err != nil {
			t.Fatal(err)
		}
		c, err := client.OverHTTP(m.url, made.Secret)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	many, others, last := outside("many"), []*client.Client{outside("a"), outside("b"), outside("c"), outside("d")}, outside("last")
	local, err := client.OverSocket(m.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	// fill makes a client start requests that wait, until there is no place for more or the given number waits. It returns how many wait.
	ctx, free := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer free()
	ask := func(ctx context.Context, c *client.Client, wait int) error {
		_, err := c.Do(ctx, "logs", admin.LogsArguments{Tool: "no/tool", After: 1, Wait: wait}, "")
		return err
	}
	fill := func(name string, c *client.Client, places int) {
		t.Helper()
		refused := make(chan error)
		const more = 3
		for range places + more {
			waiting.Go(func() {
				for ctx.Err() == nil {
					if err := ask(ctx, c, 10); err != nil && ctx.Err() == nil {
						select {
						case refused <- err:
						case <-ctx.Done():
						}
						return
					}
				}
			})
		}
		for range more {
			if failed, ok := errors.AsType[*wasmtools.Error](<-refused); !ok || failed.Code != wasmtools.CodeOverloaded || !strings.Contains(failed.Message, "try again later") {
				t.Errorf("%s: got %v, want to be told that there is no place", name, failed)
			}
		}
	}
	fill("one token", many, 16)
	if err := ask(t.Context(), others[0], 1); err != nil {
		t.Errorf("while one token has many followers: %v", err)
	}
	for _, c := range others[:3] {
		fill("other tokens", c, 16)
	}
	full := func() bool {
		failed, ok := errors.AsType[*wasmtools.Error](ask(t.Context(), last, 1))
		return ok && failed.Code == wasmtools.CodeOverloaded
	}
	for tries := 0; !full(); tries++ { // another follower may be between two requests
		if tries == 10 {
			t.Fatal("64 follow over HTTP, and there is always a place for one more")
		}
	}
	if err := ask(t.Context(), local, 1); err != nil {
		t.Errorf("over the socket, while 64 follow over HTTP: %v", err)
	}

	fill("the socket", local, 32)
	said := map[string]*bufio.Reader{}
	for _, name := range []string{"logs", "events"} {
		out, to := io.Pipe()
		told, tell := io.Pipe()
		waiting.Go(func() {
			command.Main([]string{name, "-f", "--config", m.config}, strings.NewReader(""), to, tell)
			_ = to.Close()
			_ = tell.Close()
		})
		go func() { // until there is a line about the change below
			defer out.Close()
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if strings.Contains(lines.Text(), "switched") {
					return
				}
			}
		}()
		said[name] = bufio.NewReader(told)
		line, err := said[name].ReadString('\n')
		if want := "toolsrv: the server has no room for another follower now; trying again until it has: 32 clients are following the log or events already"; err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%s: got %q, %v", name, line, err)
		}
	}
	free()
	m.must(t, "disable", "shop/echo")
	m.must(t, "enable", "shop/echo") // the commands end when nobody reads their output
	m.must(t, "disable", "shop/echo")
	for name, rest := range said {
		if more, err := io.ReadAll(rest); err != nil || strings.Contains(string(more), "no place") {
			t.Errorf("%s: got %q, %v, want it to say once that there is no place", name, more, err)
		}
	}
}
