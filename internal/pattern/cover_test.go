package pattern_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/pattern"
)

func TestCover(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		all       string // patterns, separated by blanks
		p         string
		uncovered string // empty if p is covered
	}{
		{"math/add", "math/add", ""},
		{"math/add", "/math/add", ""},
		{"math", "math/add", ""},
		{"math", "math/*", ""},
		{"math/*", "math", "/math"},
		{"math", "mat", "/mat"},
		{"mat", "math", "/math"},
		{"math", "math*", "/matha"},
		{"math*", "math", ""},
		{"*", "**", ""},
		{"**", "*", ""},
		{"*", "a/**/z", ""},
		{"a/*", "a/**/z", ""},
		{"a/**/z", "a/*", "/a/a"},
		{"**/add", "math/add", ""},
		{"**/add", "math/*/add", ""},
		{"**/add", "math/add*", "/math/adda"},
		{"math/a* math/b*", "math/a*", ""},
		{"a* b* c*", "a*/x", ""},
		{"a* b*", "*", "/c"},
		{"math/* web/*", "*/get", "/a/get"},
		{"", "math", "/math"},
		{"a b", "a", ""},
		{"*a *b", "*ab", ""},
		{"*ab", "*b", "/b"},
		{"a*b", "a*c*b", ""},
		{"a*c*b", "a*b", "/ab"},
		{"Math", "math", "/math"},
	} {
		uncovered, ok := pattern.Cover(strings.Fields(test.all), test.p)
		if uncovered != test.uncovered || ok != (test.uncovered == "") {
			t.Errorf("%q by %q: got %q, %t, want %q", test.p, test.all, uncovered, ok, test.uncovered)
		}
	}
}

// TestCoverAgreesWithMatch compares Cover with the results of Match, for random patterns of a few letters.
func TestCoverAgreesWithMatch(t *testing.T) {
	t.Parallel()
	var paths []string
	names := []string{"a", "b", "c", "aa", "ab", "ba", "bb", "aab", "aba"}
	for _, x := range names {
		paths = append(paths, "/"+x)
		for _, y := range names {
			paths = append(paths, "/"+x+"/"+y)
			for _, z := range names {
				paths = append(paths, "/"+x+"/"+y+"/"+z)
			}
		}
	}
	random := func() string {
		parts := make([]string, 1+rand.IntN(3))
		for i := range parts {
			if rand.IntN(4) == 0 {
				parts[i] = "**"
				continue
			}
			for range 1 + rand.IntN(3) {
				if letter := "ab*"[rand.IntN(3)]; letter != '*' || !strings.HasSuffix(parts[i], "*") {
					parts[i] += string(letter)
				}
			}
		}
		return strings.Join(parts, "/")
	}
	covered := 0
	for range 3000 {
		all, p := []string{random(), random(), random()}, random()
		uncovered, ok := pattern.Cover(all, p)
		by := func(path string) bool {
			return pattern.Match(all[0], path) || pattern.Match(all[1], path) || pattern.Match(all[2], path)
		}
		switch {
		case !ok && (uncovered == "" || !pattern.Match(p, uncovered) || by(uncovered)):
			t.Fatalf("%q by %q: %q does not show that it is not covered", p, all, uncovered)
		case ok:
			covered++
			for _, path := range paths {
				if pattern.Match(p, path) && !by(path) {
					t.Fatalf("%q by %q: %s is not covered", p, all, path)
				}
			}
		}
	}
	if covered < 100 {
		t.Errorf("only %d were covered", covered)
	}
}

// TestHostileCover compares patterns that have the most possible places at once. Cover returns soon, and says that they are not covered.
func TestHostileCover(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	for _, p := range []string{strings.Repeat("*a", 30) + "*", strings.Repeat("**/*a*b*/", 12) + "a"} {
		var all []string
		for i := range 64 {
			all = append(all, strings.Repeat("*a*b", 10)+strings.Repeat("*", i%2)+string(rune('a'+i%26)))
		}
		if _, ok := pattern.Cover(all, p); ok {
			t.Errorf("%q is covered", p)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func BenchmarkCover(b *testing.B) {
	var all []string
	for i := range 64 {
		all = append(all, "team"+string(rune('a'+i%26))+"/*")
	}
	for name, p := range map[string]string{"usual": "teamz/reports/w*", "hostile": strings.Repeat("*a", 30) + "*"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				pattern.Cover(all, p)
			}
		})
	}
}
