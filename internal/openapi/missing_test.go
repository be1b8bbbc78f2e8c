package openapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestGuess checks which tool is guessed, among those that /tools lists.
// Proves: Nothing stops the server
func TestGuess(t *testing.T) {
	t.Parallel()
	table := tableOf(t, add(), echo("math/divide"), echo("text/summarise"), echo("secret/launch_all"), echo("top"))
	if err := table.Disable("secret", ""); err != nil {
		t.Fatal(err)
	}
	app := appOf(t, table, openapi.Options{})
	for path, want := range map[string]string{
		"/math/ad":                              "/math/add",
		"/math/add/":                            "/math/add",
		"/Math/Add":                             "/math/add",
		"/math-add":                             "/math/add",
		"/math/substract":                       "",
		"/add":                                  "/math/add",
		"/maths/v2/add":                         "/math/add",
		"/text/summarize":                       "/text/summarise",
		"/tpo":                                  "/top",
		"/secret/launch-all":                    "",
		"/launch_all":                           "",
		"/secret/launch_al":                     "",
		"/":                                     "",
		"//":                                    "",
		"/nothing/like/it":                      "",
		"/math%2Fadd":                           "",
		"/" + strings.Repeat("math/add/", 1000): "",
		"/math/add\x00":                         "/math/add",
	} {
		r := post("/", `{}`)
		r.URL.Path, r.URL.RawPath = path, ""
		if strings.Contains(path, "%") {
			r = post(path, `{}`)
		}
		answer := serve(app, r)
		got := bodyOf(t, answer)
		expected := `{"detail":"Not Found","code":"not_found"}`
		if want != "" {
			expected = `{"detail":"Not Found: did you mean ` + want + `?","code":"not_found"}`
		}
		if answer.StatusCode != http.StatusNotFound || got != expected {
			t.Errorf("%.60q: got %d %s, want 404 %s", path, answer.StatusCode, got, expected)
		}
	}
}

// TestGuessAmongMany mistypes the path of one of 10,000 similar tools by a letter, and checks that the tool is guessed. It also bounds what a
// hostile path costs.
// Proves: Nothing stops the server
func TestGuessAmongMany(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	var tools []*wasmtools.Tool
	long := strings.Repeat("x", 48)
	for i := range 10_000 {
		tools = append(tools, echo(fmt.Sprintf("ns%d/%s/t%d", i/100, long, i)))
	}
	app := appOf(t, tableOf(t, tools...), openapi.Options{})
	for path, want := range map[string]string{
		"/ns42/" + long + "/t42422":   "/ns42/" + long + "/t4242",
		"/ns4 2/" + long + "/t4242":   "/ns42/" + long + "/t4242",
		"/ns42/" + long + "x/t4242":   "/ns42/" + long + "/t4242",
		"/ns42/" + long + "/tt4242":   "/ns42/" + long + "/t4242",
		"/elsewhere/t4242":            "/ns42/" + long + "/t4242",
		"/ns4242/" + long + "/nosuch": "",
	} {
		r := post("/", `{}`)
		r.URL.Path = path
		if got := bodyOf(t, serve(app, r)); !strings.Contains(got, `"Not Found`) || strings.Contains(got, "mean "+want+"?") != (want != "") {
			t.Errorf("%s: got %s, want a guess at %q", path, got, want)
		}
	}
	r := post("/", `{}`)
	r.URL.Path = "/ns42/" + long + strings.Repeat("y", 8)
	least := time.Hour
	for range 20 { // the fastest of several tries, since the machine may be busy
		began := time.Now()
		serve(app, r)
		least = min(least, time.Since(began))
	}
	if least > 5*time.Millisecond {
		t.Errorf("a path unlike all 10,000 tools takes %v", least)
	}
}

// TestUnsettled requests a path without a tool while tools are still being read, and afterwards.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	table := tableOf(t, add())
	var settled atomic.Bool
	table.SetComing(func(path string) bool { return !settled.Load() && path == "/math/ad" })
	app := appOf(t, table, openapi.Options{Dependencies: []openapi.Dependency{bearer(t, "token")}})
	check := func(when, path, token string, want int, says string) {
		t.Helper()
		answer := serve(app, post(path, `{"a":1,"b":2}`, "Authorization", token))
		body := bodyOf(t, answer)
		if answer.StatusCode != want || !strings.Contains(body, says) {
			t.Errorf("%s, %s: got %d %s, want %d with %s", when, path, answer.StatusCode, body, want, says)
		}
		if after := answer.Header.Get("Retry-After"); (after == "1") != (want == http.StatusServiceUnavailable) {
			t.Errorf("%s, %s: got Retry-After %q", when, path, after)
		}
	}
	check("unsettled", "/math/add", "Bearer token", 200, "3")
	check("unsettled", "/math/ad", "Bearer token", 503, `{"detail":"There is no such tool yet, but files that may contain it are still being read; try again.","code":"not_ready"}`)
	check("unsettled elsewhere", "/math/ads", "Bearer token", 404, "did you mean /math/add?")
	check("unsettled, without a token", "/math/ad", "", 401, "bearer")
	settled.Store(true)
	check("settled", "/math/ad", "Bearer token", 404, "did you mean /math/add?")
}

// TestSettledMeanwhile makes a tool appear between the lookup of its path and the check whether all tools are there.
func TestSettledMeanwhile(t *testing.T) {
	t.Parallel()
	table := tableOf(t)
	table.SetComing(func(string) bool {
		if err := table.Replace([]*wasmtools.Tool{add()}, nil); err != nil {
			t.Error(err)
		}
		return false
	})
	app := appOf(t, table, openapi.Options{})
	answer := serve(app, post("/math/add", `{"a":1,"b":2}`))
	if body := bodyOf(t, answer); answer.StatusCode != http.StatusOK || body != "3" {
		t.Errorf("got %d %s, want 200 3", answer.StatusCode, body)
	}
}

// BenchmarkMissing requests a mistyped path among 10,000 tools.
func BenchmarkMissing(b *testing.B) {
	app := appOf(b, many(b, 10_000), openapi.Options{})
	r := testkit.Repeat(get("/group-3/tool-1233x"))
	for b.Loop() {
		if status := r.Serve(app); status != http.StatusNotFound {
			b.Fatal(status)
		}
	}
}
