package text_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Not parallel: AllocsPerRun counts what the whole process allocates.
func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"two\nlines\tand a tab":      "two\nlines\tand a tab",
		"grüße 世界 😀 a\u00a0b":        "grüße 世界 😀 a\u00a0b",
		"\x1b[31mred\x00\x7f\r":      `\u001b[31mred\u0000\u007f\u000d`,
		"\u0080\u0085\u009b31m":      `\u0080\u0085\u009b31m`,
		"a\u202eb\u2066c\u061cd":     `a\u202eb\u2066c\u061cd`,
		"zero\u200bwidth\ufeff":      `zero\u200bwidth\ufeff`,
		"\u2028\u2029":               `\u2028\u2029`,
		"tag \U000e0041":             `tag \udb40\udc41`,
		"no UTF-8 \x9b31m \xff":      `no UTF-8 \ufffd31m \ufffd`,
		"a replacement \ufffd stays": "a replacement \ufffd stays",
	} {
		if got := text.Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
		if got := text.EscapeBytes([]byte(in)); string(got) != want {
			t.Errorf("EscapeBytes(%q) = %q, want %q", in, got, want)
		}
	}
	plain := []byte("nothing to escape: 世界")
	if n := testing.AllocsPerRun(10, func() { text.EscapeBytes(plain) }); n != 0 {
		t.Errorf("EscapeBytes makes %v allocations where nothing has to be escaped, want none", n)
	}
}

func TestClipEscaped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		most int
		want string
	}{
		{"abc", 5, "abc"},
		{"abcde", 5, "abcde"},
		{"abcdef", 5, "ab..."},
		{"\x00\x00", 12, "\x00\x00"},
		{"\x00\x00\x00", 12, "\x00..."},
		{`""""`, 7, `""...`},
		{"äää", 6, "äää"},
		{"äää", 5, "ä..."},
		{"\xff\xff", 12, "\ufffd"},
		{strings.Repeat("a", 100), 3, "..."},
	} {
		if got := text.ClipEscaped(test.in, test.most); got != test.want {
			t.Errorf("ClipEscaped(%q, %d) = %q, want %q", test.in, test.most, got, test.want)
		}
	}
}

// FuzzEscape checks that Escape leaves nothing to escape, that JSON keeps its meaning, and that a clipped text is short
// enough in each form of the log.
// Proves: Answers and logs show what is meant to be seen
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "abc", "\x00\x7f\"\\", "\u202e\u0085\U000e0041\ue000", "\xff\xc3", "😀\u2028"} {
		f.Add(seed, 20)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		escaped := text.Escape(s)
		if !utf8.ValidString(escaped) || text.Escape(escaped) != escaped {
			t.Fatalf("Escape(%q) = %q: not done", s, escaped)
		}
		for _, r := range escaped {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
				t.Fatalf("Escape(%q) = %q: %U stands in it", s, escaped, r)
			}
		}
		encoded, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		if err := json.Unmarshal(text.EscapeBytes(encoded), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &want); err != nil || got != want {
			t.Fatalf("the JSON of %q says %q once it is escaped", s, got)
		}
		most = 3 + most&0xff
		clipped := text.ClipEscaped(s, most)
		if !utf8.ValidString(clipped) {
			t.Fatalf("ClipEscaped(%q, %d) = %q: no UTF-8", s, most, clipped)
		}
		if n := len(strconv.Quote(clipped)) - 2; n > most {
			t.Fatalf("ClipEscaped(%q, %d) takes %d bytes as a string of Go's", s, most, n)
		}
		var line bytes.Buffer
		h := slog.NewJSONHandler(&line, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key != slog.MessageKey {
				return slog.Attr{}
			}
			return a
		}})
		slog.New(h).Info(clipped)
		if n := len(text.EscapeBytes(line.Bytes())) - len(`{"msg":""}`+"\n"); n > most {
			t.Fatalf("ClipEscaped(%q, %d) takes %d bytes as JSON: %s", s, most, n, line.Bytes())
		}
	})
}

func BenchmarkEscapeBytes(b *testing.B) {
	line := []byte(`{"time":"2026-01-02T03:04:05.678901234Z","level":"INFO","msg":"request","method":"POST","path":"/math/add","status":200,"duration":23456}` + "\n")
	batch := bytes.Repeat(line, 100)
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		text.EscapeBytes(batch)
	}
}
