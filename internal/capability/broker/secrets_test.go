package broker_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestSecretsOfGrants adds and removes secrets with configurations: a tool has the current ones, and a named secret that does not exist is reported
// as missing. A source that can't be read changes nothing.
func TestSecretsOfGrants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "keys/a", "the first value")
	testkit.Put(t, dir, "keys/short", "hunter2")
	store := secret.NewStore(nil)
	var log testkit.Log
	b := broker.New(&config.Config{}, broker.Options{Secrets: store, Logger: log.Logger(slog.LevelInfo)})
	needs := wasmtools.Needs{"http": {Words: []string{"https://api.example.com/"}}, "secrets": {Words: []string{"a", "short"}}}
	const grant = "[[grant]]\nmatch='x'\nhttp=['https://api.example.com/']\nheaders={'https://api.example.com/'={X-Key='${secret:a}',X-Other='${secret:b}'}}\nsecrets=['a','short']\n"
	apply := func(secrets string) (missing string, err error) {
		t.Helper()
		c, err := config.Parse([]byte(grant+"[secrets]\n"+secrets), dir)
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Make(c, nil)
		if err != nil {
			return "", err
		}
		return lacks(g.For("/x", needs)), nil
	}
	missing, err := apply("directory='keys'")
	if want := "http (the secret of ${secret:...} in the headers of its grant (line 1): no source in [secrets] has it), secrets short (no source in [secrets] has it)"; err != nil || missing != want {
		t.Errorf("got %v, %v, want %s", missing, err, want)
	}
	if log.Count("short is not used as a secret") != 1 || strings.Contains(log.String(), "hunter2") {
		t.Errorf("logged %s", log.String())
	}
	testkit.Put(t, dir, "b", "another value")
	if missing, err = apply("directory='keys'\nfiles={b='b',short='b'}"); err != nil || missing != "" {
		t.Errorf("missing %q, %v", missing, err)
	}
	if _, err = apply("files={b='gone'}"); err == nil || !strings.Contains(err.Error(), "of line 7: ") {
		t.Errorf("a file that does not exist: got %v", err)
	}
	if got := store.Everything().String("another value"); got != "[secret]" {
		t.Errorf("after a source that can't be read, the secret is no longer found: %s", got)
	}
}

// TestSecretsChangeOften replaces all secrets at each reload: no reload is refused for that, and there is a warning once old values are forgotten.
func TestSecretsChangeOften(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log testkit.Log
	b := broker.New(&config.Config{}, broker.Options{Logger: log.Logger(slog.LevelInfo)})
	var names strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&names, "s%d='value'\n", i)
	}
	c, err := config.Parse([]byte("[secrets.files]\n"+names.String()), dir)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 6 {
		testkit.Put(t, dir, "value", fmt.Sprintf("value-of-round-%03d", round))
		g, err := b.Make(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := max(0, round-4)
		if got := log.Count("secrets change often: 1000 former values"); got != want {
			t.Errorf("round %d: %d warnings, want %d", round, got, want)
		}
		if got := strings.Contains(strings.Join(g.Warnings(), " "), "secrets change often"); got != (want > 0) {
			t.Errorf("round %d: the grants have the warning: %v", round, got)
		}
	}
	if strings.Contains(log.String(), "value-of") {
		t.Errorf("a value is logged: %s", log.String())
	}
}

// TestSecretsOfStandingGrants runs a call while configurations are published, and others are made but never published. The call gets new values of
// its secrets as long as its grant exists. It gets no values from after the grant was taken away, even if the grant came back.
// Proves: Secrets stay secret
func TestSecretsOfStandingGrants(t *testing.T) {
	t.Parallel()
	grant := func(secrets, header string) string {
		return "[[grant]]\nmatch = 'a/*'\nhttp = ['SERVICE']\nprivate = ['127.0.0.0/8']\nsecrets = [" + secrets + "]\nheaders = {'SERVICE' = {" + header + " = '${secret:key}'}}\n"
	}
	texts := map[string]string{"granted": grant("'key'", "X-Key"), "other": grant("'key', 'more'", "X-Other"), "none": ""}
	for _, c := range []struct {
		name  string
		steps string // the configurations; one that is not published is followed by ?
		want  int    // which configuration's values the call of the first configuration gets
	}{
		{"the grant stays", "granted granted granted", 2},
		{"a second one is not published", "granted granted?", 0},
		{"a second one is not published, then the grant goes", "granted granted? none", 0},
		{"a second one is not published, then the grant changes", "granted granted? other", 0},
		{"the grant stays, a third one is not published, then the grant goes", "granted granted granted? none", 1},
		{"one in between is not published, and the grant stays", "granted granted? granted", 2},
		{"another grant is not published, and the grant stays", "granted other? granted", 2},
		{"one without a grant is not published, and the grant stays", "granted none? granted", 2},
		{"the grant goes and comes back", "granted none granted", 0},
		{"the grant changes and changes back", "granted other granted", 0},
		{"the grant goes, and one with it is not published", "granted none granted? granted", 0},
		{"the grant stays, goes and comes back", "granted granted none granted granted", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan string, 1)
			service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				arrived <- r.Header.Get("X-Key") + r.Header.Get("X-Other")
			}))
			defer service.Close()
			dir := t.TempDir()
			testkit.Put(t, dir, "more", "another-secret-of-the-tool")
			var published *secret.Values
			b := broker.New(&config.Config{}, broker.Options{Secrets: secret.NewStore(func() *secret.Values { return published })})
			needs := wasmtools.Needs{"http": {Words: []string{service.URL}}, "secrets": {Words: []string{"key", "more"}}}
			// sees returns which value of the key the calls under each of a tool's grants see.
			sees := func(held []hostcall.Grant) (all []string) {
				for _, one := range held {
					g := hosttest.Begin(t, make([]byte, 64<<10), 1, hostcall.Run{Serving: true, Grants: []any{one.Value}})
					switch one.Value.(type) {
					case *secrets.Permission:
						n := g.Do(&secrets.Set().Functions[0], 0, 0, uint64(copy(g.Memory, "key")))
						g.Do(&secrets.Set().Functions[1], 0, 0)
						all = append(all, string(g.Memory[:n]))
					case *httpcap.Permission:
						g.Do(&httpcap.Set().Functions[0], 0, 0, uint64(copy(g.Memory, `{"method":"GET","url":"`+service.URL+`"}`)), 0, 0)
						all = append(all, <-arrived)
					default:
						t.Fatalf("got a grant %T", one.Value)
					}
					g.ABI.End()
				}
				return all
			}
			value := func(n int) string { return fmt.Sprintf("the-key-of-step-%d-is-this", n) }
			var first []hostcall.Grant
			for n, step := range strings.Fields(c.steps) {
				kind, looked := strings.CutSuffix(step, "?")
				testkit.Put(t, dir, "key", value(n))
				parsed, err := config.Parse([]byte(strings.ReplaceAll(texts[kind], "SERVICE", service.URL)+"[secrets]\nfiles = {key = 'key', more = 'more'}\n"), dir)
				if err != nil {
					t.Fatal(err)
				}
				grants, err := b.Make(parsed, nil)
				if err != nil {
					t.Fatal(err)
				}
				held := grants.For("/a/b", needs).Values
				runtime.GC() // values that nobody holds any more must not be needed
				if !looked {
					published = grants.Secrets()
					for _, got := range sees(held) {
						if want := value(n); got != want {
							t.Errorf("step %d: a new call gets %s, want %s", n, got, want)
						}
					}
				}
				if n == 0 {
					first = held
				}
			}
			got := sees(first)
			if len(got) != 2 {
				t.Fatalf("got %q, want what two grants see", got)
			}
			for _, got := range got {
				if want := value(c.want); got != want {
					t.Errorf("the call of the first configuration gets %s, want %s", got, want)
				}
			}
		})
	}
}
