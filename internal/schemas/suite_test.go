package schemas_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// These are parts of the errors with which we may refuse to compile a schema of the official suite.
const (
	outside = "points outside the file"         // it refers to the suite's server, or to a metaschema
	dynamic = "depends on how it is reached"    // dynamic references, which wasmtools/RATIONALE.md explains
	misfits = "the default doesn't fit its own" // the suite allows such defaults
)

// suiteUnlike says, by file and group, where our results differ from the suite's. JSON Schema leaves these cases open.
var suiteUnlike = map[string]string{
	"content": "contentEncoding is asserted in every draft",
	"optional/content/validation of string-encoded content based on media type": "contentMediaType is not",
	"optional/content/validation of binary-encoded media type documents":        "contentMediaType is not",
	"optional/ecmascript-regex/ECMA 262 \\S matches everything but whitespace":  "RE2's white space is ASCII's",
	"optional/ecmascript-regex/ECMA 262 \\s matches whitespace":                 "RE2's white space is ASCII's",
	"optional/format/ecmascript-regex":                                          "RE2 knows \\a",
	"optional/zeroTerminatedFloats":                                             "1.0 is an integer in draft 4, too, as in all later ones",
}

// TestSuite runs the official tests of JSON Schema.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		groups  func(*testing.T) []schemas.SuiteGroup
		judged  int            // how many values were judged
		refused map[string]int // how many schemas are refused, by a part of the error
		unlike  map[string]string
	}{
		{"drafts 7 and 2020-12", schemas.SuiteOfModule, 1800, map[string]int{outside: 9, dynamic: 9, misfits: 6}, nil},
		{"all drafts", schemas.SuiteOfPackage, 6000, map[string]int{outside: 15, dynamic: 17, misfits: 15}, suiteUnlike},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			judged, refused, unlike := 0, map[string]int{}, map[string]bool{}
			for _, g := range tt.groups(t) {
				at := "draft " + g.Draft + ", " + g.File + ", " + g.Description
				s, err := schemas.Compile(g.Schema)
				if err != nil {
					known := ""
					for part := range tt.refused {
						if strings.Contains(err.Error(), part) {
							known = part
						}
					}
					if refused[known]++; known == "" {
						t.Errorf("%s: %v", at, err)
					}
					continue
				}
				open := g.File
				if suiteUnlike[open] == "" {
					open += "/" + g.Description
				}
				for _, test := range g.Tests {
					judged++
					got, err := s.Admits(string(test.Data))
					switch {
					case got == test.Valid:
					case suiteUnlike[open] != "":
						unlike[open] = true
					default:
						t.Errorf("%s, %s: got %v (%v), want %v", at, test.Description, got, err, test.Valid)
					}
				}
			}
			if !maps.Equal(refused, tt.refused) {
				t.Errorf("refused schemas: got %v, want %v", refused, tt.refused)
			}
			for open := range tt.unlike {
				if !unlike[open] {
					t.Errorf("%s: our result now agrees with the suite's: take the group off the list", open)
				}
			}
			if judged < tt.judged {
				t.Errorf("only %d values were judged, want at least %d", judged, tt.judged)
			}
			t.Logf("%d values were judged", judged)
		})
	}
}
