package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// libraryMeta returns the metaschema of a draft, which the library has built in.
func libraryMeta(d draft) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.LoadURL = func(uri string) (io.ReadCloser, error) { return nil, fmt.Errorf("%s is not fetched", uri) }
	return c.Compile(d.uri())
}

// checkLibrary is checkMeta(0) with the library. The library gets one schema at a time, without nested ones, because otherwise it overlooks errors
// within "definitions".
func (s *source) checkLibrary() (err error) {
	meta, err := libraryMeta(s.draft)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	for _, one := range s.order {
		if one != 0 && s.tree.Values[one].Kind != jsontree.Object {
			continue // checked as a part of the schema that contains it
		}
		var wrong *jsonschema.ValidationError
		if err := meta.Validate(s.plain(one, one)); errors.As(err, &wrong) {
			return fmt.Errorf("%s: %w", s.pointer(one), wrong)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// plain returns the value at i in the library's form, without nested schemas. It leaves out patterns, which are checked when they are compiled.
func (s *source) plain(i, of int32) any {
	v := &s.tree.Values[i]
	switch v.Kind {
	case jsontree.Bool:
		return v.Text == "true"
	case jsontree.Number:
		return json.Number(v.Text)
	case jsontree.String:
		return v.Decoded()
	case jsontree.Array:
		items := []any{}
		for c := v.First; c != 0; c = s.tree.Values[c].Next {
			items = append(items, s.plain(c, of))
		}
		return items
	case jsontree.Object:
		_, isSchema := s.base[i]
		if isSchema && i != of {
			return map[string]any{}
		}
		_, inSchema := s.base[v.Parent]
		object := map[string]any{}
		for m := v.First; m != 0; m = s.tree.Values[m].Next {
			key := s.tree.Values[m].Key
			if isSchema && key == "pattern" && s.tree.Values[m].Kind == jsontree.String {
				continue
			}
			if inSchema && !isSchema && v.Key == "patternProperties" {
				key = regexp.QuoteMeta(key)
			}
			object[key] = s.plain(m, of)
		}
		return object
	}
	return nil
}

// compareMeta also checks a schema with the library. It reports whether both accept it, and whether there was anything to check.
func compareMeta(t *testing.T, text string) (accepted, judged bool) {
	t.Helper()
	s, err := findSchemas(text)
	if err != nil {
		return false, false
	}
	ours, theirs := s.checkMeta(0), s.checkLibrary()
	if (ours == nil) != (theirs == nil) {
		t.Errorf("%s: got %v, the library says %v", text, ours, theirs)
	}
	if ours != nil && len(ours.Error()) > 1<<10 {
		t.Errorf("an error of %d bytes", len(ours.Error()))
	}
	return ours == nil, true
}

// TestMetaschema compares our check with the library's for the schemas of the official tests, each in every draft, and with one value after the other
// replaced by one that may be wrong.
func TestMetaschema(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("compares on one goroutine, so the race detector would find nothing")
	}
	t.Run("drafts 7 and 2020-12", func(t *testing.T) { t.Parallel(); checkMetaschema(t, SuiteOfModule(t)) })
	t.Run("all drafts", func(t *testing.T) { t.Parallel(); checkMetaschema(t, SuiteOfPackage(t)) })
}

// replacements are values that are put in place of a schema's values, and may be wrong there.
var replacements = []string{`"x"`, `"object"`, `"#/$defs/x"`, `"a b"`, `"%zz"`, `"#a"`, `"a:b"`, `"-a"`, `"https://json-schema.org/draft/2020-12/schema"`, `-1`, `0`, `-0`, `1.0`, `1.5`, `1e2`, `1e-2`, `[]`, `["a"]`, `["a","a"]`,
	`["null","null"]`, `["null","string"]`, `["\u0061","a"]`, `[1]`, `[1,1.0]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `{}`, `{"a":1}`, `{"a":true}`, `{"a":["b"]}`, `{"a":["b","b"]}`, `{"a":[]}`, `{"type":1}`, `[{}]`, `[true]`, `[{"type":"x"}]`, `null`, `true`}

func checkMetaschema(t *testing.T, groups []SuiteGroup) {
	accepted, judged, seen := 0, 0, map[string]bool{}
	judge := func(text string) {
		if seen[text] {
			return
		}
		seen[text] = true
		good, ok := compareMeta(t, text)
		if good {
			accepted++
		}
		if ok {
			judged++
		}
	}
	for n, g := range groups {
		for draft, uri := range SuiteURIs {
			text := strings.Replace(string(g.Schema), SuiteURIs[g.Draft], uri, 1)
			judge(text)
			if draft != g.Draft && n%10 != 0 || testing.Short() && n%25 != 0 {
				continue
			}
			var tree jsontree.Tree
			if tree.Read(text) != nil {
				continue
			}
			for i, v := range tree.Values {
				for j, r := range replacements {
					if (i+j)%12 == 0 {
						judge(text[:v.Start] + r + text[int(v.Start)+len(v.Text):])
					}
				}
			}
		}
	}
	if accepted < 500 || judged < accepted+500 {
		t.Errorf("%d of %d schemas are accepted: the comparison means little", accepted, judged)
	}
	t.Logf("%d of %d schemas are accepted", accepted, judged)
}

// TestMetaschemaOfRules compares our check with the library's for each keyword in each draft with each replacement: the table must have neither too
// few rules nor too many.
func TestMetaschemaOfRules(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	words := []string{"unknown"}
	for word := range rules {
		words = append(words, word)
	}
	for word := range keywords {
		if rules[word] == nil && word != "const" {
			t.Errorf("there is no rule for %s", word)
		}
	}
	accepted, judged := 0, 0
	for _, uri := range SuiteURIs {
		for _, word := range words {
			for _, r := range replacements {
				for _, text := range []string{
					`{"$schema":"` + uri + `","` + word + `":` + r + `}`,
					`{"$schema":"` + uri + `","minimum":1,"properties":{"a":{"` + word + `":` + r + `,"maximum":2}}}`,
				} {
					if good, ok := compareMeta(t, text); ok {
						if judged++; good {
							accepted++
						}
					}
				}
			}
		}
	}
	if accepted < 5000 || judged-accepted < 5000 {
		t.Errorf("%d of %d schemas are accepted: the comparison means little", accepted, judged)
	}
	t.Logf("%d of %d schemas are accepted", accepted, judged)
}

// FuzzMetaschema compares our check with the library's for any schema.
func FuzzMetaschema(f *testing.F) {
	for _, r := range replacements {
		f.Add(`{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":true,"dependencies":{"a":` + r + `},"items":` + r + `}`)
		f.Add(`{"$anchor":"a","$vocabulary":` + r + `,"anyOf":[{"not":` + r + `}],"dependentRequired":{"a":` + r + `}}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= 2<<10 { // the library may take its time
			compareMeta(t, text)
		}
	})
}

// TestFormatsOfLibrary compares our check with the library's for texts of each format, with some characters exchanged, inserted or left out.
func TestFormatsOfLibrary(t *testing.T) {
	t.Parallel()
	texts := []string{"", "2024-02-29T23:59:60Z", "2024-02-30T00:00:00z", "1998-12-31T15:59:60.123-08:00", "08:30:06.283185Z", "23:59:60+00:00", "00:29:60+00:30", "01:29:60+01:30", "24:00:00Z", "P4DT12H30M5S", "P1Y2M3D", "P1YT1S", "PT1H", "P2W", "P1Y3D", "P", "PT",
		"P1Y/2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z/P1D", "2024-01-01T00:00:00Z/2024-01-02T00:00:00Z", "www.example.com.", "xn--4gbwdl.xn--wgbh1c", "a-b.c", strings.Repeat("a", 63) + ".b", "joe.bloggs@example.com", "\"joe bloggs\"@example.com", "joe@[127.0.0.1]", "joe@[IPv6:::1]", "te~st@e.c",
		"::1", "::ffff:192.168.0.1", "1:2:3:4:5:6:7:8", "fe80::a%eth1", "https://example.com/a?b#c", "http://[2001:db8::1]:8080/", "http://2001:db8::1/", "//example.com", "urn:a:b", "mailto:a@b", "#a", "a b", "/a/b~0~1", "0#", "12/a", "01/a", "2EB8AA08-aa98-11ea-b4aa-73b441d16380", "http://a:b@c/%41", "-a.example", "a..b"}
	const extra = "0159TZtz:-+./~%@[]#aPYMDWHS \\\x00\u00e9\"1"
	unlike := map[string]bool{"ipv4": true, "ip-address": true, "uri-template": true, "regex": true} // on purpose: see TestFormats
	signs := regexp.MustCompile(`(^|[^0-9a-z])[-+]`)
	r := rand.New(rand.NewPCG(19, 3))
	compared, admitted := 0, 0
	for name, ours := range formats {
		library := jsonschema.Formats[name]
		if library == nil {
			t.Errorf("the library does not know the format %s", name)
		}
		judge := func(text string) {
			got, want := ours(text), library(text)
			if compared++; got {
				admitted++
			}
			switch {
			case got == want || unlike[name]:
			case (name == "hostname" || name == "email") && !got && (strings.Contains(text, ".-") || strings.Contains(text, "@-")): // the library looks only at the first label
			case !got && name == "email" && strings.Contains(text, "@["): // the library allows zeros at the beginning
			case !got && signs.MatchString(text): // the library reads signs as parts of numbers
			default:
				t.Errorf("%s: %q: got %t, the library says %t", name, text, got, want)
			}
		}
		for _, text := range texts {
			judge(text)
			for range 100 {
				changed := []byte(text)
				for range 1 + r.IntN(2) {
					at := r.IntN(len(changed) + 1)
					c := extra[r.IntN(len(extra))]
					switch kind := r.IntN(3); {
					case kind == 0 || at == len(changed):
						changed = append(changed[:at:at], append([]byte{c}, changed[at:]...)...)
					case kind == 1:
						changed[at] = c
					default:
						changed = append(changed[:at], changed[at+1:]...)
					}
				}
				judge(string(changed))
			}
		}
	}
	if admitted < 1000 {
		t.Errorf("%d of %d texts were admitted: the comparison means little", admitted, compared)
	}
	t.Logf("%d of %d texts were admitted", admitted, compared)
	for known := range jsonschema.Formats {
		if formats[known] == nil {
			t.Errorf("the library knows the format %s", known)
		}
	}
}
