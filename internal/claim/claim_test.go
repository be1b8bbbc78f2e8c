package claim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/claim"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestKnown asks for callers with names that were made up to be confused with a caller and rules that are known already.
// Proves: Callers keep apart
func TestKnown(t *testing.T) {
	t.Parallel()
	rules, err := claim.New("test", []claim.Rule{{Claim: "group", Value: "a", Scopes: []string{"a"}}, {Claim: "group", Value: "b", Scopes: []string{"b"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := func(groups ...string) func(string) []string { return func(string) []string { return groups } }
	ann, err := rules.Principal("ann", "r", in("a", "b"))
	if err != nil || ann.String() != "ann" || ann.Realm() != "r" || !ann.May("/a") || !ann.May("/b") {
		t.Fatalf("got %v, %v", ann, err)
	}
	for _, c := range []struct {
		name, realm string
		groups      []string
	}{
		{"ann\x00\x00\x00", "r", []string{"b"}}, {"ann\x00\x00", "r", []string{"b"}}, {"ann\x00\x00\x00\x00\x01", "r", nil}, {"ann\x00\x00\x00", "r", []string{"a", "b"}},
		{"r\x00ann", "", []string{"a", "b"}}, {"ann", "", []string{"a", "b"}}, {"Ann", "r", []string{"a", "b"}}, {"ann", "r\x00", []string{"a", "b"}}, {"ann", "r", []string{"a"}},
	} {
		if p, err := rules.Principal(c.name, c.realm, in(c.groups...)); err == nil && p == ann {
			t.Errorf("%q of %q with %q is ann", c.name, c.realm, c.groups)
		}
	}
	if again, err := rules.Principal("ann", "r", in("b", "a")); err != nil || again != ann {
		t.Errorf("ann herself: got %v, %v", again, err)
	}
}

// TestRate checks that of all matching rules, the first one with a rate gives the rate.
func TestRate(t *testing.T) {
	t.Parallel()
	slow, fast := wasmtools.Rate{Calls: 1, Period: time.Second}, wasmtools.Rate{Concurrent: 9}
	rules, err := claim.New("oidc", []claim.Rule{
		{Claim: "groups", Value: "all", Scopes: []string{"a"}}, {Claim: "groups", Value: "slow", Scopes: []string{"b"}, Rate: slow}, {Claim: "groups", Value: "fast", Scopes: []string{"c"}, Rate: fast},
	})
	if err != nil {
		t.Fatal(err)
	}
	for groups, want := range map[string]wasmtools.Rate{"all": {}, "all slow": slow, "all fast": fast, "fast slow": slow} {
		p, err := rules.Principal("ann", "", func(string) []string { return strings.Fields(groups) })
		if err != nil || p == nil || p.Rate() != want {
			t.Errorf("%s: got %+v, %v, want %+v", groups, p.Rate(), err, want)
		}
	}
}
