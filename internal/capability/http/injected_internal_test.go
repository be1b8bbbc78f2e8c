package http

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/secret"
)

// TestPut makes configurations an hour apart, some of which are not published. Answers are searched for what the configuration in force injects,
// however long ago it was made, and for some time longer for what an earlier one injected.
// Proves: Secrets stay secret
func TestPut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		steps string // the secrets that configurations inject; an unpublished one is followed by ?
		want  string
	}{
		{"one", "a", "a"},
		{"unpublished ones follow", "a - b? b? b? b?", "b"},
		{"unpublished ones follow for a long time", "a b? b? b? b?", "a b"},
		{"it is in force again", "a b a", "a b"},
		{"it was in force", "a b", "a b"},
		{"it was in force long ago", "a b b b b", "b"},
		{"it was in force, and unpublished ones follow", "a b c? c? c? d?", "b d"},
		{"unpublished ones inject nothing", "a -? -? -? -?", "a"},
		{"it was never published", "a b? a", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var i Injected
				var published *secret.Values
				store := secret.NewStore(func() *secret.Values { return published })
				for _, step := range strings.Fields(c.steps) {
					name, looked := strings.CutSuffix(step, "?")
					var rules []Rule
					if name != "-" {
						rules = []Rule{{Headers: map[string]map[string]string{"https://a.example": {"X-Key": "${secret:" + name + "}"}}}}
					}
					values, _, err := secret.Read(secret.Sources{})
					if err != nil {
						t.Fatal(err)
					}
					store.Add(values)
					i.Put(rules, values)
					if !looked {
						published = values
					}
					time.Sleep(time.Hour)
				}
				got := i.names("a.example")
				slices.Sort(got)
				if got := strings.Join(got, " "); got != c.want {
					t.Errorf("answers are searched for %q, want %q", got, c.want)
				}
			})
		})
	}
}
