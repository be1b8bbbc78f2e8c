package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
)

const someDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// TestPins reads tables [[pin]], and checks which of them match nothing, and how a reload's changes are described.
func TestPins(t *testing.T) {
	t.Parallel()
	pin := func(match, digest string) string {
		return "[[pin]]\nmatch = '" + match + "'\nsha256 = '" + digest + "'\n"
	}
	c := parse(t, pin("acme/*", someDigest)+pin("acme/csv.wasm", strings.ToUpper(someDigest))+pin("/acmee", someDigest)+pin("acme/cvs.wasm", someDigest))
	if p := c.Pins[1]; p.Match != "acme/csv.wasm" || p.SHA256 != someDigest || p.Line != 4 {
		t.Errorf("got %+v", p)
	}
	var got []string
	for _, u := range configured.UnmatchedOf(c, []string{"/acme/csv"}, []string{"acme/csv.wasm"}) {
		got = append(got, u.Key+": "+u.String())
	}
	want := []string{`pin[2].match: "/acmee" matches no tool: did you mean "acme"?`, `pin[3].match: no file has the name "acme/cvs.wasm": did you mean "acme/csv.wasm"?`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := configured.DifferenceOf(config.Default(), parse(t, pin("acme/*", someDigest))).Settings; !slices.Equal(got, []string{"pin: +acme/*: 9f86d081884c"}) {
		t.Errorf("the difference: got %q", got)
	}
	if got := configured.NeedRestart(parse(t, ""), c); got != nil {
		t.Errorf("a restart is needed for %q", got)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no match":         {"sha256 = '" + someDigest + "'", "pin[0]: match is missing"},
		"no digest":        {"match = 'acme'", "pin[0]: sha256 is missing"},
		"a short digest":   {"match = 'acme'\nsha256 = '9f86d0'", "pin[0].sha256: is not a SHA-256, which has 64 of the digits 0-9 a-f: `sha256sum FILE` prints it"},
		"no digits":        {"match = 'acme'\nsha256 = '" + strings.Repeat("x", 64) + "'", "pin[0].sha256: is not a SHA-256"},
		"files":            {pin("*.wasm", someDigest)[8:], "pin[0].match: is not the name of a file"},
		"outside":          {pin("../x.wasm", someDigest)[8:], "pin[0].match: is not the name of a file in its source"},
		"an absolute path": {pin("/srv/x.wasm", someDigest)[8:], "pin[0].match: is not the name of a file in its source"},
		"no pattern":       {pin("a**", someDigest)[8:], "pin[0].match: has ** next to"},
	} {
		if _, err := config.Parse([]byte("[[pin]]\n"+c.text), ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
