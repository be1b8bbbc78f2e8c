package broker_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// TestSecretsOfGrants makes secrets come and go with configurations: a tool has the present ones, and a named one that is absent counts
// as missing. A source that can't be read leaves all as it is.
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

// TestSecretsChangeOften has all secrets replaced at each reload: none is refused for it, and there is a warning once former values are forgotten.
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
		if got := log.Count("secrets change often: 1000 values"); got != want {
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
