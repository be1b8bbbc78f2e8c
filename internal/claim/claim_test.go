package claim_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/claim"
)

// TestKnown asks for callers whose names are made to be taken for one that is known already with the rules that matched.
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
