package token_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/token"
)

// What esbuild takes for a comment hides no brackets after it, and nothing else is taken for a comment.
func TestNestingBehindComments(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"//\r", "//\u2028", "//\u2029", "#!\r", "<!-- `\n", "-->`\n", "a\n --> `\n", "a/*\n*/-->`\n", "a-->1;", "/*<!--*/", "/* // */", "'//';", "`<!--`;", "/[/*]/;"} {
		if brackets, _ := token.Nesting(before + strings.Repeat("(", 500)); brackets != 500 {
			t.Errorf("%q: got %d brackets, want 500", before, brackets)
		}
	}
}
