package textfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content, want, err string
	}{
		"text":                     {"a = 1\n", "a = 1\n", ""},
		"empty":                    {"", "", ""},
		"a byte order mark":        {"\ufeffa = 1\n", "a = 1\n", ""},
		"as much as is allowed":    {strings.Repeat("#", textfile.Max), strings.Repeat("#", textfile.Max), ""},
		"a byte more than allowed": {strings.Repeat("#", textfile.Max+1), "", "text: the file is larger than 1 MiB"},
	} {
		file := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := textfile.Read(file)
		if string(got) != test.want || (err != nil) != (test.err != "") || err != nil && !strings.HasSuffix(err.Error(), test.err) {
			t.Errorf("%s: %d bytes, %v; want %d, %q", name, len(got), err, len(test.want), test.err)
		}
	}
	if _, err := textfile.Read(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	folder := t.TempDir()
	if _, err := textfile.Read(folder); err == nil || !strings.Contains(err.Error(), folder+": it is a folder: name a file") {
		t.Errorf("a folder: %v, which should name it, and say what to do", err)
	}
}

func TestUpTo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]string{7: "", 6: "", 5: "the file is larger than 5 bytes", 1 << 1: "the file is larger than 2 bytes"} {
		got, err := textfile.UpTo(file, most)
		if want == "" && (string(got) != "abcdef" || err != nil) || want != "" && (got != nil || err == nil || err.Error() != "read "+file+": "+want) {
			t.Errorf("up to %d: %q, %v; want %q", most, got, err, want)
		}
	}
}
