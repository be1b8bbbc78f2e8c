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
		"number sign in it":        {"one#1\n", []string{"one#1"}},
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
