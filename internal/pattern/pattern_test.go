package pattern_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/pattern"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ yes, no []string }{
		"math/add":    {yes: []string{"/math/add", "math/add", "/math/add/below"}, no: []string{"/math", "/math/ad", "/math/added", "/x/math/add", "/Math/add", "/"}},
		"math":        {yes: []string{"/math/add", "/math/deep/er/add", "/math"}, no: []string{"/maths/add", "/x/math", "/ma/th"}},
		"/math":       {yes: []string{"/math/add"}, no: []string{"/x/math"}},
		"math/*":      {yes: []string{"/math/add", "/math/deep/add"}, no: []string{"/math", "/maths/add"}},
		"*":           {yes: []string{"/add", "/math/add", "/a/b/c"}, no: []string{"/"}},
		"*/add":       {yes: []string{"/math/add", "/x/add", "/x/add/below"}, no: []string{"/add", "/a/b/add", "/math/sub"}},
		"**/add":      {yes: []string{"/add", "/math/add", "/a/b/c/add", "/add/add", "/a/add/b"}, no: []string{"/math/sub", "/adder", "/a/badd"}},
		"a/**/z":      {yes: []string{"/a/z", "/a/b/z", "/a/b/c/z", "/a/z/z", "/a/b/z/c"}, no: []string{"/a", "/z", "/b/a/z", "/a/b/zz"}},
		"**":          {yes: []string{"/add", "/a/b/c"}},
		"**/**":       {yes: []string{"/add", "/a/b/c"}},
		"**/*":        {yes: []string{"/add", "/a/b/c"}},
		"**/a/b":      {yes: []string{"/a/b", "/a/a/b", "/x/a/a/b"}, no: []string{"/a/x/b", "/a"}},
		"**/a/**/b/c": {yes: []string{"/a/b/c", "/a/b/x/b/c", "/x/a/x/b/b/c/x"}, no: []string{"/b/c", "/a/b/x/c", "/a/c/b"}},
		"m*h/a*":      {yes: []string{"/math/add", "/mh/a", "/mathhh/abc"}, no: []string{"/math/sub", "/maths/add"}},
		"*a*b*":       {yes: []string{"/ab", "/xaxbx", "/aab", "/abab"}, no: []string{"/ba", "/a/b", "/b"}},
		"*ab":         {yes: []string{"/ab", "/aab", "/abab"}, no: []string{"/aba"}},
	}
	for p, tt := range tests {
		if err := pattern.Check(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
		for _, path := range tt.yes {
			if !pattern.Match(p, path) {
				t.Errorf("%q does not match %q", p, path)
			}
		}
		for _, path := range tt.no {
			if pattern.Match(p, path) {
				t.Errorf("%q matches %q", p, path)
			}
		}
	}
}

// TestHostile matches patterns that make simple matchers take exponential time.
func TestHostile(t *testing.T) {
	t.Parallel()
	path := strings.Repeat("/a", 10_000) + "/" + strings.Repeat("a", 10_000)
	for _, p := range []string{strings.Repeat("**/a/", 25) + "b", strings.Repeat("**/*a*a*a*a*/", 9) + "b", strings.Repeat("a*", 60) + "b"} {
		if pattern.Match(p, path) {
			t.Errorf("%q matches", p)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]string{
		"":                       "the pattern is empty",
		"/":                      "the pattern is empty",
		"a//b":                   "has an empty part",
		"a/":                     "has an empty part",
		"a b":                    "has a character that is not allowed in a name",
		"a/**b":                  "has ** next to other characters",
		strings.Repeat("a", 65):  "a name has at most 64",
		strings.Repeat("a", 129): "the pattern has 129 bytes",
	} {
		if err := pattern.Check(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", p, err, want)
		}
	}
}
