package secret_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestCheckBrought checks that values are refused that a caller could set to have words removed from other answers.
// Proves: Callers keep apart
func TestCheckBrought(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a": "",
		"sk-ant-api03-abcdefgh12345678":            "",
		"YW5uOmh1bnRlcjJodW50ZXIy":                 "",
		"":                                         "0 bytes",
		"short-1":                                  "7 bytes",
		"application/json":                         "letters, digits",
		"1234567890123456":                         "letters, digits",
		"aaaaaaaaaaaaaaa1":                         "different characters",
		"a word 1 and another 2":                   "without blanks",
		`"sha":"9f86d081884c7d65"`:                 "quotes",
		`{x9f86d081884c7d659a}`:                    "brackets",
		`9f86d081,884c7d659a2f`:                    "commas",
		`\u0039f86d081884c7d65`:                    "backslashes",
		"Basic:YW5uOmh1bnRlcjJodW50ZXIy/+==":       "",
		"a-line-1-and-more\n2":                     "without blanks",
		"zero-\x00-and-more-12":                    "without blanks",
		"ünïcödé-12345678":                         "without blanks",
		strings.Repeat("abcdefg1", 513):            "4104 bytes",
	} {
		err := secret.CheckBrought(value)
		if (want == "") != (err == nil) || want != "" && (!errors.Is(err, secret.ErrUnfit) || !strings.Contains(err.Error(), want) || len(value) > 3 && strings.Contains(err.Error(), value)) {
			t.Errorf("%.40q: got %v, want %q", value, err, want)
		}
	}
}

// TestAdmit checks that no caller can take the room of others, however many tokens it has.
func TestAdmit(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	s := secret.NewStore(nil)
	value := func(i int) string { return fmt.Sprintf("a-callers-secret-%05d", i) }
	admitted := 0
	for i := range 100 { // one caller with many names and tokens
		id := personal.ID(fmt.Sprintf("issued+ann%%2f%d", i%7))
		if err := s.Admit("issued+ann", 32); err != nil {
			if !errors.Is(err, secret.ErrTooMany) {
				t.Fatal(err)
			}
			break
		}
		admitted++
		s.Bring(id, "issued+ann", "x", value(i))
		if i%3 == 0 {
			s.Bring(id, "issued+ann", "x", "") // former values still count
		}
	}
	if admitted != 32 {
		t.Errorf("one caller has brought %d secrets; 32 are allowed", admitted)
	}
	if err := s.Admit("issued+bob", 32); err != nil {
		t.Errorf("another caller: %v", err)
	}
	s.BringAll(func(yield func(id, root personal.ID, name, value string)) {
		for i := range 4000 {
			id := personal.ID(fmt.Sprintf("oidc+%d", i))
			yield(id, id, "y", "the-same-for-all-of-them-1")
		}
	})
	if err := s.Admit("issued+bob", 32); !errors.Is(err, secret.ErrTooMany) {
		t.Errorf("with 4,000 others: got %v", err)
	}
}

// TestOwnViews checks that a grant that is no longer in force gets no secrets that a caller has set later.
// Proves: Callers keep apart
func TestOwnViews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "shared", "a-shared-secret-1")
	testkit.Put(t, dir, "principals/issued+ann/given", "a-given-secret-1")
	read := func() *secret.Values {
		v, _, err := secret.Read(secret.Sources{Directory: dir})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var published *secret.Values
	s := secret.NewStore(func() *secret.Values { return published })
	first := read()
	s.Add(first)
	published = first
	stands, withdrawn := secret.NewView(s, first), secret.NewView(s, first)
	s.Bring("issued+ann", "issued+ann", "own", "the-first-own-secret-1")
	second := read()
	s.Add(second)
	stands.Extend(second)
	s.Bring("issued+ann", "issued+ann", "own", "the-second-own-secret-2") // before the second configuration is published
	published = second
	s.Bring("issued+ann", "issued+ann", "own", "the-third-own-secret-3")
	for name, c := range map[string]struct {
		view       *secret.View
		of, secret string
		want       string
	}{
		"it stands":           {stands, "issued+ann", "own", "the-third-own-secret-3"},
		"it was withdrawn":    {withdrawn, "issued+ann", "own", "the-second-own-secret-2"},
		"given":               {stands, "issued+ann", "given", "a-given-secret-1"},
		"another's":           {stands, "issued+bob", "own", ""},
		"another's given one": {stands, "issued+bob", "given", ""},
		"in capitals":         {stands, "issued+ANN", "own", ""},
		"of nobody":           {stands, "", "own", ""},
		"a shared one":        {stands, "issued+ann", "shared", ""},
		"a name with an @":    {stands, "ann", "own@issued", ""},
	} {
		if got, ok := c.view.Own(c.secret, personal.ID(c.of)); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got, err := stands.Secret("own"); err == nil {
		t.Errorf("a caller's secret is everybody's: %q", got)
	}
	const all = "the-first-own-secret-1 the-second-own-secret-2 the-third-own-secret-3 a-given-secret-1 a-shared-secret-1"
	for name, c := range map[string]struct{ got, want string }{
		"of one caller":          {s.RedactorsOf("issued+ann", secret.NamesOf("own@principal", "given@principal")).String(all), "[secret] [secret] [secret] [secret] a-shared-secret-1"},
		"of shared ones":         {s.RedactorsOf("issued+ann", secret.NamesOf("shared")).String(all), strings.Replace(all, "a-shared-secret-1", "[secret]", 1)},
		"of another":             {s.RedactorsOf("issued+bob", secret.NamesOf("own@principal", "given@principal", "shared")).String(all), strings.Replace(all, "a-shared-secret-1", "[secret]", 1)},
		"of nobody":              {s.RedactorsOf("", secret.NamesOf("own@principal", "given@principal")).String(all), all},
		"by the name of another": {s.Redactor(secret.NamesOf("given@issued+bob", "own@principal")).String(all), all},
		"of the log":             {s.Everything().String(all), strings.Replace(all, "a-shared-secret-1", "[secret]", 1)},
	} {
		if c.got != c.want {
			t.Errorf("the redactor of those %s leaves %q, want %q", name, c.got, c.want)
		}
	}
}

// TestRedactorsOfAllocates checks that RedactorsOf allocates nothing, since it runs in every call of a tool with a secret.
func TestRedactorsOfAllocates(t *testing.T) { // AllocsPerRun counts what other tests allocate, too
	dir := private(t)
	testkit.Put(t, dir, "shared", "a-shared-secret-1")
	testkit.Put(t, dir, "principals/issued+ann/given", "a-given-secret-1")
	v, _, err := secret.Read(secret.Sources{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	s := secret.NewStore(nil)
	s.Add(v)
	s.Bring("issued+ann", "issued+ann", "own", "the-first-own-secret-1")
	names := secret.NamesOf("own@principal", "given@principal", "shared")
	if n := testing.AllocsPerRun(100, func() {
		if s.RedactorsOf("issued+ann", names).Empty() {
			t.Error("nothing is found")
		}
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
