package config_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
)

// TestFingerprints refuses fingerprints that have no effect, and finds those of missing tools.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	print := strings.Repeat("0", 64)
	read := func(scopes string) (*config.Config, error) {
		return config.Parse([]byte("[[auth.token]]\nname = \"ci\"\nsha256 = \""+strings.Repeat("1", 64)+"\"\nscopes = "+scopes+"\n"), t.TempDir())
	}
	for scopes, want := range map[string]string{
		`["math/*", "math/add@` + print + `"]`: "auth.token[0].scopes: scope 2 of 2 has a fingerprint, but another scope names the same tool without one",
		`["math/*@` + print + `"]`:             "a pattern with * can't have one",
		`["math/add@123"]`:                     "what follows the @ is not a fingerprint",
	} {
		if _, err := read(scopes); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "123") {
			t.Errorf("%s: got %v, want %q", scopes, err, want)
		}
	}
	c, err := read(`["math/add@` + print + `", "mat/add@` + print + `"]`)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, u := range configured.UnmatchedOf(c, []string{"/math/add"}, nil) {
		all = append(all, u.Key+": "+u.String())
	}
	if got, want := strings.Join(all, "\n"), `auth.token[0].scopes[1]: "mat/add" matches no tool: did you mean "math/add"?`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
