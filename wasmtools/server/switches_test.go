package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
)

// TestSwitchesStay switches a tool off: after the answer no call is let in, and lists and documents lack the tool. That stays so after a restart, in
// another process with the same state, until the switch is reset.
func TestSwitchesStay(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = shortDir(t)
	ask := func(name string, arguments any, to any) {
		t.Helper()
		over, err := client.OverSocket(socket.Of(c))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := over.Do(t.Context(), name, arguments, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Into(to); err != nil {
			t.Fatal(err)
		}
	}
	var done admin.Switching
	lists := func(r *running) bool {
		t.Helper()
		answer, err := http.Get(r.url + "/tools")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `"/shop/echo"`)
	}
	r := start(t, c)
	if status := r.status("/shop/echo", ""); status != 200 || !lists(r) {
		t.Fatalf("at first: got %d", status)
	}
	ask("disable", admin.Switched{Names: []string{"shop/echo"}, Reason: "it echoes"}, &done)
	if !done.Changed || len(done.Tools) != 1 || done.Tools[0].Why.By != admin.BySwitch || done.Tools[0].Why.Reason != "it echoes" || !strings.HasPrefix(done.Tools[0].Why.Who, "uid ") {
		t.Errorf("got %+v", done)
	}
	for _, when := range []string{"at once", "after a restart"} {
		if when != "at once" {
			r.stop()
			if err := r.result(); err != nil {
				t.Fatal(err)
			}
			r = start(t, c)
		}
		status, body, err := r.call("/shop/echo", "")
		if err != nil || status != 503 || !strings.Contains(body, "it echoes") || lists(r) {
			t.Errorf("%s: got %d %s, %v", when, status, body, err)
		}
		var listed admin.Tools
		ask("tools", admin.ToolsArguments{All: true, Pattern: "shop/echo"}, &listed)
		if len(listed.Tools) != 1 || listed.Tools[0].State != admin.Disabled || listed.Tools[0].Why.Since == nil || !strings.HasPrefix(listed.Tools[0].Why.String(), "switched by uid ") {
			t.Errorf("%s: got %+v", when, listed)
		}
	}
	if err := r.Reload(c); err != nil {
		t.Fatal(err)
	}
	if status := r.status("/shop/echo", ""); status != 503 {
		t.Errorf("after a reload: got %d", status)
	}
	ask("reset", admin.Reset{Names: []string{"shop"}}, &done)
	if status := r.status("/shop/echo", ""); status != 200 || !done.Changed {
		t.Errorf("after a reset: got %d, %+v", status, done)
	}
	if log := r.log.String(); !strings.Contains(log, `"msg":"tools switched","switched":["/shop"],"to":"reset","principal":"uid `) {
		t.Errorf("the log has no line about the switch:\n%s", log)
	}
}

// TestSwitchByHTTP makes changes with If-Match, and as callers who may only look.
func TestSwitchByHTTP(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory, c.Admin.Enabled = shortDir(t), true
	r := administered(t, c, staff{})
	post := func(token, match, body string) (int, string, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), "POST", r.url+"/admin/v1/disable", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		q.Header.Set("Content-Type", "application/json")
		if match != "" {
			q.Header.Set("If-Match", match)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, answer.Header.Get("ETag"), string(text)
	}
	const shop = `{"names":["shop/echo"]}`
	for _, step := range []struct {
		name, token, match, body string
		status                   int
		tag                      string
		off                      bool
	}{
		{"may not", "bob", "", shop, 403, "", false},
		{"not a tag", "ann", "0", shop, 422, "", false},
		{"a weak tag", "ann", `W/"0"`, shop, 422, "", false},
		{"two tags", "ann", `"0", "1"`, shop, 422, "", false},
		{"an old version", "ann", `"7"`, shop, 412, "", false},
		{"the version", "ann", `"0"`, shop, 200, `"1"`, true},
		{"again, with the earlier version", "ann", `"0"`, shop, 412, "", true},
		{"again", "ann", "", shop, 200, `"1"`, true},
		{"any version", "ann", "*", shop, 200, `"1"`, true},
		{"no names", "ann", "", `{}`, 422, "", true},
		{"no body", "ann", "", ``, 422, "", true},
		{"too much", "ann", "", `{"names":["` + strings.Repeat("x", 1<<20) + `"]}`, 413, "", true},
	} {
		status, tag, body := post(step.token, step.match, step.body)
		if status != step.status || tag != step.tag || !json.Valid([]byte(body)) {
			t.Errorf("%s: got %d, %s, %.200s; want %d, %s", step.name, status, tag, body, step.status, step.tag)
		}
		if off := r.status("/shop/echo", "eve") == 503; off != step.off {
			t.Errorf("%s: it is off: %v", step.name, off)
		}
	}
}
