package credential_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/textfile"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"one":                      {"one", []string{"one"}},
		"two":                      {"one\ntwo\n", []string{"one", "two"}},
		"comments and blank lines": {"# ours\n\none\n   \n  # theirs\ntwo\n\n", []string{"one", "two"}},
		"line ends of Windows":     {"one\r\n\r\n# x\r\ntwo\r\n", []string{"one", "two"}},
		"blanks around":            {"  one\t\n", []string{"one"}},
		"mark in front":            {"\ufeffone\n", []string{"one"}},
		"number sign inside":       {"one#1\n", []string{"one#1"}},
		"the same twice":           {"one\none\n", []string{"one", "one"}},
		"longest":                  {strings.Repeat("x", 1024), []string{strings.Repeat("x", 1024)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "tokens")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := credential.ReadFile(file)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestReadFileErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"empty":         {"", "has no token"},
		"comments only": {"# one\n\n", "has no token"},
		"blank in it":   {"one\n# x\nzq zq\n", "tokens:3: the token has a space"},
		"not ASCII":     {"zqé", "tokens:1: the token has a space or a character"},
		"null":          {"zq\x00", "tokens:1: "},
		"too long":      {"\n" + strings.Repeat("zq", 513), "tokens:2: the token has 1026 bytes; at most 1024 are allowed"},
		"too large":     {strings.Repeat("zq\n", textfile.Max/3+1), "larger than 1 MiB"},
		"a binary":      {"\x7fELF\x02", "tokens:1: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "tokens")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := credential.ReadFile(file)
			if err == nil || got != nil {
				t.Fatalf("got %q, %v, want an error", got, err)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "zq") || !strings.Contains(err.Error(), file) {
				t.Errorf("got %q, want the file and %q, and no token", err, tt.want)
			}
		})
	}
	if _, err := credential.ReadFile(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("no file: got %v, want an error with its path", err)
	}
}

// TestMask checks that tokens, complete or not, are removed from paths that clients have put them into, and nothing else is.
func TestMask(t *testing.T) { // not in parallel: it counts allocations
	const secret = "abcdefghij_klmnopqrstuvwxyz234567abcdefghijklmnopqrstuvwxyz234567abcdefgh"
	for name, c := range map[string]struct{ text, want string }{
		"empty":                {"", ""},
		"a path":               {"/math/add", "/math/add"},
		"a token":              {"/tsv_" + secret, "/tsv_[hidden]"},
		"in the middle":        {"/math/tsv_" + secret + "/x", "/math/tsv_[hidden]/x"},
		"alone":                {"tsv_" + secret, "tsv_[hidden]"},
		"two":                  {"/tsv_" + secret + "/tsv_" + secret, "/tsv_[hidden]/tsv_[hidden]"},
		"one after the other":  {"/tsv_" + secret + "tsv_" + secret, "/tsv_[hidden]"},
		"upper case":           {"/" + strings.ToUpper("tsv_"+secret), "/TSV_[hidden]"},
		"cut off":              {"/tsv_" + secret[:20], "/tsv_[hidden]"},
		"cut off soon":         {"/tsv_" + secret[:19], "/tsv_" + secret[:19]},
		"another character":    {"/tsv_" + secret[:40] + "0" + secret[41:], "/tsv_[hidden]"},
		"a hyphen":             {"/tsv_" + secret[:10] + "-" + secret[11:], "/tsv_[hidden]"},
		"a word before":        {"Bearer tsv_" + secret + ", yes", "Bearer tsv_[hidden], yes"},
		"letters before":       {"xtsv_" + secret, "xtsv_[hidden]"},
		"prefix twice":         {"/tsv_tsv_" + secret, "/tsv_[hidden]"},
		"a tool of that name":  {"/tsv_tools/add", "/tsv_tools/add"},
		"the prefix":           {"tsv_", "tsv_"},
		"the end of a prefix":  {"sv_" + secret, "sv_" + secret},
		"not ASCII in between": {"/tsv_" + secret[:30] + "\u00e9" + secret[30:], "/tsv_[hidden]\u00e9" + secret[30:]},
		"underscores":          {strings.Repeat("_", 50), strings.Repeat("_", 50)},
	} {
		if got := credential.Mask(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { credential.Mask("/math/add_two") }); n != 0 {
		t.Errorf("a path without a token takes %v allocations", n)
	}
}
