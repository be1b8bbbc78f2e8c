package text_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/text"
)

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"a/b_c-1.wasm": "a/b_c-1.wasm",
		"":             "",
		"a b":          "'a b'",
		"it's":         `'it'\''s'`,
		"$HOME":        "'$HOME'",
		"é":            "'é'",
	} {
		if got := text.ShellQuote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
