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

func TestPrefix(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 0, ""},
		{"abc", 3, "abc"},
		{"abc", 2, "ab"},
		{"aä", 2, "a"},
		{"ä", 1, ""},
		{"a😀b", 4, "a"},
		{"e\u0301\u0301", 4, "e\u0301"}, // a combining character is a character
		{"\x00\x1b[", 2, "\x00\x1b"},
		{strings.Repeat("\x80", 9), 5, strings.Repeat("\x80", 5)},
		{"\xf0\x9f\x98", 2, ""}, // the beginning of a character counts as one
		{strings.Repeat("ä", 1<<20), 1<<20 + 1, strings.Repeat("ä", 1<<19)},
	} {
		if got := text.Prefix(test.in, test.most); got != test.want {
			t.Errorf("Prefix(%.40q, %d) = %.40q, want %.40q", test.in, test.most, got, test.want)
		}
		if got := text.Prefix([]byte(test.in), test.most); string(got) != test.want {
			t.Errorf("Prefix of bytes(%.40q, %d) = %.40q, want %.40q", test.in, test.most, got, test.want)
		}
	}
}

// FuzzClip checks the promises for every text.
func FuzzClip(f *testing.F) {
	for _, seed := range []string{"", "abc", "aäää", "😀😀", "\x80\x80\x80\x80", "e\u0301\u0301", "\xf0\x9f\x98", "\x00\x1b[31m"} {
		f.Add(seed, 5)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = 3 + most&0xff
		head, clipped := text.Prefix(s, most), text.Clip(s, most)
		switch {
		case len(head) > most || len(clipped) > most:
			t.Errorf("%q: got %q and %q, longer than %d", s, head, clipped, most)
		case !strings.HasPrefix(s, head) || !strings.HasPrefix(s, strings.TrimSuffix(clipped, "...")):
			t.Errorf("%q: got %q and %q, not how it begins", s, head, clipped)
		case utf8.ValidString(s) && (!utf8.ValidString(head) || !utf8.ValidString(clipped)):
			t.Errorf("%q: got %q and %q, not UTF-8 any more", s, head, clipped)
		case len(s) <= most && (head != s || clipped != s):
			t.Errorf("%q: got %q and %q, want all of it", s, head, clipped)
		case len(s) > most && len(head) < most-utf8.UTFMax+1:
			t.Errorf("%q: got %q, much shorter than %d", s, head, most)
		}
	})
}
