package personal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A caller is the identity of a caller in its parts: origin, realm and name.
type caller struct{ origin, realm, name string }

func (c caller) principal() (*wasmtools.Principal, error) {
	p, err := wasmtools.NewPrincipal(c.name, c.origin)
	if err != nil {
		return nil, err
	}
	return p.WithRealm(c.realm)
}

// hostile are callers whose names were chosen to be confused with other callers'.
func hostile() []caller {
	long := strings.Repeat("x", wasmtools.MaxPrincipalName-1)
	return []caller{
		{"issued", "", "ann"}, {"declared", "", "ann"}, {"oidc", "https://a.example", "ann"}, {"oidc", "https://b.example", "ann"}, {"certificate", "dns", "ann"}, {"certificate", "email", "ann"},
		{"issued", "", "Ann"}, {"issued", "", "ANN"}, {"issued", "", "ann "}, {"issued", "", " ann"}, {"issued", "", "ann/agent"}, {"issued", "", "ann%2fagent"}, {"issued", "", "ann%2Fagent"},
		{"oidc", "", "issued+ann"}, {"oidc", "", "oidc+ann"}, {"oidc", "ann", "x"}, {"oidc", "", "ann+x"}, {"oidc", "a+b", "c"}, {"oidc", "a", "b+c"}, {"oidc", "a", "b%2bc"}, {"oidc+a", "", "b"},
		{"oidc", "", "."}, {"oidc", "", ".."}, {"oidc", "", "..."}, {"oidc", "", "../issued+ann"}, {"oidc", "", "..%2fissued+ann"}, {"oidc", "", "/etc/passwd"}, {"oidc", "", `..\ann`}, {"oidc", "", "ann:x"},
		{"oidc", "", "~" + strings.Repeat("0", 64)}, {"oidc", "", "%"}, {"oidc", "", "%61nn"}, {"oidc", "", "con"}, {"oidc", "", "CON"}, {"oidc", "", "ann."}, {"oidc", "", "ann@github"}, {"oidc", "", "principal"},
		{"oidc", "", "\u00e9"}, {"oidc", "", "e\u0301"}, {"oidc", "", "\u0430nn"}, {"oidc", "", "\uff41nn"}, {"oidc", "", "ß"}, {"oidc", "", "ss"}, {"oidc", "", "\u212a"}, {"oidc", "", "k"}, {"oidc", "", "K"},
		{"oidc", "", long + "a"}, {"oidc", "", long + "b"}, {"oidc", "", strings.ToUpper(long) + "A"}, {"oidc", "", strings.ToUpper(long) + "B"}, {"oidc", strings.Repeat("/", 1024), "ann"}, {"oidc", strings.Repeat("/", 1023), "ann"},
		{strings.Repeat("A", 100), strings.Repeat("b", 1024), "ann"}, {strings.Repeat("A", 100), strings.Repeat("b", 1024), "bob"}, {"process", "", "process"}, {"x", "", "everybody"},
	}
}

// TestCollisions checks that no two callers have the same ID, not even without regard to case, and that Parse accepts each ID.
// Proves: Callers keep apart
func TestCollisions(t *testing.T) {
	t.Parallel()
	seen := map[string]caller{}
	for _, c := range hostile() {
		p, err := c.principal()
		if err != nil {
			t.Fatalf("%q: %v", c, err)
		}
		id, err := personal.Of(p)
		if err != nil {
			t.Errorf("%q: %v", c, err)
			continue
		}
		if before, twice := seen[strings.ToLower(string(id))]; twice {
			t.Errorf("%q and %q are both %s", before, c, id)
		}
		seen[strings.ToLower(string(id))] = c
		if strings.ContainsAny(string(id), `/\:@ *?"<>|`) || strings.HasPrefix(string(id), ".") || len(id) > personal.Max || strings.ContainsFunc(string(id), func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q: %q is not a name for a file", c, id)
		}
		if again, err := personal.Parse(string(id)); err != nil || again != id {
			t.Errorf("Parse(%s): got %s, %v", id, again, err)
		}
	}
}

// TestRandomCallers checks the same as TestCollisions, with random names of characters that have a meaning in the encoding.
func TestRandomCallers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	word := func(least int) string {
		var b strings.Builder
		for range least + random.IntN(4) {
			b.WriteByte("+%~2f/aA.b"[random.IntN(10)])
		}
		return b.String()
	}
	seen := map[personal.ID]caller{}
	for range 20_000 {
		c := caller{word(1), word(0), word(1)}
		p, err := c.principal()
		if err != nil {
			t.Fatal(err)
		}
		id, err := personal.Of(p)
		if err != nil {
			t.Fatal(err)
		}
		if before, known := seen[id]; known && before != c {
			t.Fatalf("%q and %q are both %s", before, c, id)
		}
		seen[id] = c
		if again, err := personal.Parse(string(id)); err != nil || again != id {
			t.Fatalf("%q: Parse(%s): got %s, %v", c, id, again, err)
		}
	}
}

// TestNobody checks that callers without a lasting name have no ID, and that Parse accepts no other form of an ID.
func TestNobody(t *testing.T) {
	t.Parallel()
	numbered, err := wasmtools.NewPrincipal("token-1", wasmtools.OriginToken, "*")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*wasmtools.Principal{"nil": nil, "zero": {}, "everybody": wasmtools.Everybody(), "nobody": wasmtools.Nobody(), "a numbered token": numbered} {
		if id, err := personal.Of(p); !errors.Is(err, personal.ErrNobody) {
			t.Errorf("%s: got %q, %v", name, id, err)
		}
	}
	for _, s := range []string{"", "ann", "issued", "issued+", "+ann", "issued+Ann", "issued+ann+", "issued++ann", "issued+a+b+c", "issued+%61nn", "issued+%4A", "issued+%4", "issued+%", "issued+%zz", "issued+a/b", "issued+..", "issued+.ann",
		"issued+%00", "issued+%ff", "open+everybody", "token+token-1", "issued+~" + strings.Repeat("g", 64), "issued+~" + strings.Repeat("A", 64), "issued+~ab", "issued+" + strings.Repeat("a", 200), "issued+" + strings.Repeat("a", 129)} {
		if id, err := personal.Parse(s); err == nil {
			t.Errorf("Parse(%q): got %q", s, id)
		}
	}
}

// TestRoot checks who answers for a token that another one has made, however long its name is.
func TestRoot(t *testing.T) {
	t.Parallel()
	long := "ann/" + strings.Repeat("A", 100)
	for _, c := range []struct {
		caller
		want personal.ID
	}{
		{caller{"issued", "", "ann"}, "issued+ann"}, {caller{"issued", "", "ann/agent/x"}, "issued+ann"}, {caller{"issued", "", long}, "issued+ann"},
		{caller{"oidc", "", "ann/agent"}, "oidc+ann%2fagent"}, {caller{"declared", "", "ann/agent"}, "declared+ann%2fagent"},
	} {
		p, err := c.principal()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := personal.Root(p); err != nil || got != c.want {
			t.Errorf("%q: got %s, %v, want %s", c, got, err, c.want)
		}
	}
}

func ExampleOf() {
	p, _ := wasmtools.NewPrincipal("Ann@example.com", "oidc")
	p, _ = p.WithRealm("https://id.example.com")
	fmt.Println(personal.Of(p))
	// Output: oidc+https%3a%2f%2fid.example.com+%41nn%40example.com <nil>
}
