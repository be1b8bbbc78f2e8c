package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

func TestClip(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		most     int
		want     string
	}{
		{"short", "abc", 5, "abc"},
		{"just", "abcde", 5, "abcde"},
		{"long", "abcdef", 5, "ab..."},
		{"between characters", "aäää", 6, "aä..."},
		{"inside a character", "aäää", 5, "a..."},
		{"four bytes", "😀😀", 6, "..."},
		{"no UTF-8", strings.Repeat("\x80", 9), 8, "\x80\x80\x80\x80\x80..."},
		{"nothing left", "abcdef", 3, "..."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := text.Clip(test.in, test.most)
			if got != test.want {
				t.Errorf("Clip(%q, %d) = %q, want %q", test.in, test.most, got, test.want)
			}
			if utf8.ValidString(test.in) && !utf8.ValidString(got) {
				t.Errorf("Clip(%q, %d) = %q: not UTF-8 any more", test.in, test.most, got)
			}
		})
	}
}

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
