package schemas

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestOrdinary makes the library say the same of schemas as a whole and in parts, and accept all that passes without it: the schemas of the
// official tests, read as schemas of draft 2020-12, and each of them with one value after the other replaced by what may be wrong there.
func TestOrdinary(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("compares on one goroutine, where the race detector only takes long")
	}
	t.Run("drafts 7 and 2020-12", func(t *testing.T) { t.Parallel(); checkOrdinary(t, SuiteOfModule(t)) })
	t.Run("all drafts", func(t *testing.T) { t.Parallel(); checkOrdinary(t, SuiteOfPackage(t)) })
}

func checkOrdinary(t *testing.T, groups []SuiteGroup) {
	replacements := []string{`"x"`, `"object"`, `"#/$defs/x"`, `"https://json-schema.org/draft/2020-12/schema"`, `-1`, `0`, `1.5`, `1e2`, `[]`, `["a"]`, `["a","a"]`, `["null","null"]`, `["null","string"]`, `["\u0061","a"]`,
		`[1]`, `{}`, `{"a":1}`, `{"type":1}`, `[{}]`, `[{"type":"x"}]`, `null`, `true`}
	ordinary, judged, accepted := 0, 0, map[string]bool{}
	judge := func(text string) {
		s, err := findSchemas(text)
		if err != nil {
			return
		}
		judged++
		if judged%10 == 0 {
			compareParts(t, s, text)
		}
		if s.draft != draft2020 || !s.isOrdinary(0) {
			return
		}
		ordinary++
		if accepted[text] {
			return
		}
		accepted[text] = true
		if err := s.checkLibrary(0); err != nil {
			t.Errorf("%s passes, but the library says: %v", text, err)
		}
	}
	seen := map[string]bool{}
	for _, g := range groups {
		text := strings.Replace(string(g.Schema), SuiteURIs[g.Draft], SuiteURIs["2020-12"], 1)
		if seen[text] {
			continue
		}
		seen[text] = true
		if s, err := findSchemas(string(g.Schema)); err == nil { // in its own draft
			compareParts(t, s, string(g.Schema))
		}
		judge(text)
		s, err := findSchemas(text)
		if err != nil || testing.Short() && len(seen)%5 != 0 {
			continue
		}
		for _, v := range s.tree.Values {
			for _, r := range replacements {
				judge(text[:v.Start] + r + text[int(v.Start)+len(v.Text):])
			}
		}
	}
	if ordinary < 1000 || judged < 2*ordinary {
		t.Errorf("%d of %d schemas are ordinary: the comparison means little", ordinary, judged)
	}
	t.Logf("%d of %d schemas are ordinary, %d different ones", ordinary, judged, len(accepted))
}

// compareParts makes the library say the same of a schema as a whole and in parts.
func compareParts(t *testing.T, s *source, text string) {
	t.Helper()
	meta, err := s.draft.meta()
	if err != nil {
		t.Fatal(err)
	}
	whole, parts := meta.Validate(s.plain(0, nil)), s.checkLibrary(0)
	overlooked := whole == nil && strings.Contains(text, `"definitions"`) // within others, the library doesn't look into them
	if (whole == nil) != (parts == nil) && !overlooked {
		t.Errorf("%s as a whole: %v; in parts: %v", text, whole, parts)
	}
}

// TestOrdinaryIsUsed: what SDKs make of types takes the fast way.
func TestOrdinaryIsUsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"number","description":"the first","minimum":0},"b":{"type":["array","null"],"items":{"enum":["x","y"]},"maxItems":3}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}],"default":null}}}`:                                                                                                true,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"$ref":"#/$defs/my.Type_1"}},"$defs":{"my.Type_1":true}}`:                                                                            true,
		`{"$ref":"#/a b"}`:                        false,
		`{"type":"object","minProperties":"one"}`: false,
		`{"type":"object","multipleOf":2}`:        false,
		`{"properties":{"a":{"type":"text"}}}`:    false,
		`{"required":["a","a"]}`:                  false,
		`{"anyOf":[]}`:                            false,
	} {
		s, err := findSchemas(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.isOrdinary(0); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}
