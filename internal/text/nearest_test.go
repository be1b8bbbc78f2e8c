package text_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/text"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"description", "parameters", "result", "name", "/math/add", "max_size"}
	for typed, want := range map[string]string{
		"descripton":              "description",
		"desrciption":             "description",
		"Parameters":              "parameters",
		"max-size":                "max_size",
		"/math/ad":                "/math/add",
		"nmae":                    "name",
		"":                        "",
		"x":                       "",
		"zzzzzz":                  "",
		strings.Repeat("a", 1000): "",
	} {
		if got := text.Nearest(typed, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
	if got := text.Nearest("a", []string{"b"}); got != "" {
		t.Errorf("Nearest of two names without a common letter = %q, want none", got)
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	one := text.Reach{Letters: 1, Share: 1, Shortest: 4, Longest: 12, Joined: true}
	known := []string{"if", "maxLength", "minLength", "not", "required", "$comment", "länge"}
	for typed, want := range map[string]string{
		"maxLength":          "maxLength", // the caller decides whether that is a mistake
		"max-length":         "maxLength",
		"m a x_l e ngth":     "", // the typed name is too long
		"maxlenght":          "maxLength",
		"axLength":           "maxLength",
		"mxLengt":            "", // two letters
		"fi":                 "", // the known name is too short
		"comment":            "$comment",
		"laenge":             "",
		"lange":              "", // a letter of two bytes
		"requ\x00ired":       "required",
		"require\u0301":      "", // the combining one has two bytes
		"requir\xff\xfe":     "",
		"":                   "",
		"-_ ":                "",
		"requiredrequireds1": "",
	} {
		if got := one.Nearest(typed, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}

// FuzzNearest checks that every guess is a known name and that a name is the nearest to itself.
func FuzzNearest(f *testing.F) {
	for _, seed := range []string{"", "a", "max-size", "\xff\x80", "e\u0301", "\x00", "İ", "ẞ"} {
		f.Add(seed, "max_size")
	}
	f.Fuzz(func(t *testing.T, typed, name string) {
		known := []string{"other", name}
		if got := text.Nearest(typed, known); got != "" && got != "other" && got != name {
			t.Errorf("Nearest(%q) = %q", typed, got)
		}
		if got := text.Nearest(name, known[1:]); len(name) <= 256 && got != name {
			t.Errorf("Nearest(%q) = %q, want itself", name, got)
		}
		text.Reach{Letters: 1, Share: 1, Shortest: 4, Longest: 30, Joined: true}.Nearest(typed, known)
	})
}

func BenchmarkNearest(b *testing.B) {
	known := make([]string, 1000)
	for i := range known {
		known[i] = strings.Repeat("namespace/", 2) + strings.Repeat("x", i%20)
	}
	for b.Loop() {
		text.Nearest("namespace/namspace/xxxxxxx", known)
	}
}
