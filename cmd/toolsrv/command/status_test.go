package command_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
)

// TestHolders lets a caller call a tool and listen to events, and checks that the status says what the tools and the callers hold.
func TestHolders(t *testing.T) {
	t.Parallel()
	m := manage(t, "[mcp]\nenabled = true\n")
	_, made, _ := run("tokens", "add", "ann", "--scope", "shop/*", "--config", m.config)
	ann := regexp.MustCompile(`tsv_[a-z2-7]{10}_[a-z2-7]{59}`).FindString(made)
	ask := func(method, path, body string) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, m.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+ann)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %s", path, answer.Status)
		}
		return answer
	}
	ask(http.MethodPost, "/shop/echo", `{"item":"tea"}`)
	ask(http.MethodGet, "/events", "")
	ask(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)

	code, stdout, stderr := run("status", "--json", "--config", m.config)
	var s admin.Status
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != 0 {
		t.Fatalf("got %d, %v, %s%s", code, err, stdout, stderr)
	}
	l := s.Limits
	if l.Sessions == nil || l.State == nil || l.State.Held == 0 {
		t.Fatalf("got the sessions %+v and the state %+v", l.Sessions, l.State)
	}
	// Both files have the same code, so they share one program.
	for what, use := range map[string]admin.Use{"memory": l.Memory, "code": l.Code, "mappings": l.Mappings} {
		if len(use.By) != 1 || !slices.Equal(use.By[0].Tools, []string{"/shop/echo", "/shop/refuse", "/shop/wait"}) || use.By[0].Others != 2 || use.By[0].Held < 1 || use.By[0].Held > use.Held {
			t.Errorf("%s: got %+v", what, use)
		}
	}
	for what, use := range map[string]admin.Use{"connections": l.Connections, "streams": l.Streams, "sessions": *l.Sessions} {
		at := slices.IndexFunc(use.By, func(h admin.Holder) bool { return h.Caller == "ann" })
		if at < 0 || use.By[at].Held < 1 || use.Held < use.By[at].Held || use.Limit < 1 {
			t.Errorf("%s: got %+v", what, use)
		}
	}
	_, stdout, _ = run("status", "--config", m.config)
	for _, want := range []string{`(?m)^\S+ \S+ +memory +/shop/echo, /shop/refuse, /shop/wait and 2 more$`, `(?m)^1 +streams +ann$`, `(?m)^1 +sessions +ann$`, `(?m)^state +ok, \S+ KiB$`} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("the status does not say %s:\n%s", want, stdout)
		}
	}
}

// TestStatusSources checks that a server with two sources reports both, although one can't be read.
func TestStatusSources(t *testing.T) {
	t.Parallel()
	m := manage(t, "[[source]]\nname = \"acme\"\ndirectory = \"tools\"\nnamespaces = [\"shop\", \"weather\"]\n[[source]]\nname = \"gone\"\ndirectory = \"gone\"\nnamespaces = [\"gone\"]\n")
	code, stdout, stderr := run("status", "--json", "--config", m.config)
	var s admin.Status
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != 0 {
		t.Fatalf("got %d, %v, %s%s", code, err, stdout, stderr)
	}
	if len(s.Sources) != 2 || s.Sources[0].Name != "acme" || s.Sources[0].Files != 3 || s.Sources[0].Served != 2 || s.Sources[0].Refused != 1 || s.Sources[0].Problems != 0 || s.Sources[0].Listed.IsZero() {
		t.Errorf("got the sources %+v", s.Sources)
	}
	if gone := s.Sources[len(s.Sources)-1]; gone.Name != "gone" || gone.Problems != 1 || gone.Reason == "" || !gone.Listed.IsZero() {
		t.Errorf("the status of the source that can't be read is %+v", gone)
	}
	_, stdout, _ = run("status", "--config", m.config)
	for _, want := range []string{`(?m)^acme \(\S+\) +\S+ \S+ +3 +2 +1`, `(?m)^gone \(\S+\) +- +0 +0 +0 +\S.*`} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("the status does not say %s:\n%s", want, stdout)
		}
	}
}
