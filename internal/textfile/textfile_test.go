package textfile_test

import (
	"bytes"
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
		content, want string
		err           error
	}{
		"text":                {"a = 1\n", "a = 1\n", nil},
		"empty":               {"", "", nil},
		"a byte order mark":   {"\ufeffa = 1\n", "a = 1\n", nil},
		"as much as may be":   {strings.Repeat("#", textfile.Max), strings.Repeat("#", textfile.Max), nil},
		"a byte more than so": {strings.Repeat("#", textfile.Max+1), "", textfile.ErrTooLarge},
	} {
		file := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := textfile.Read(file)
		if string(got) != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %d bytes, %v; want %d, %v", name, len(got), err, len(test.want), test.err)
		}
	}
	if _, err := textfile.Read(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	folder := t.TempDir()
	if _, err := textfile.Read(folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder: %v, which should name it", err)
	}
}

func TestUpTo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]string{6: "abcdef", 5: "abcdef", 2: "abc"} {
		if got, err := textfile.UpTo(file, most); !bytes.Equal(got, []byte(want)) || err != nil {
			t.Errorf("up to %d: %q, %v; want %q", most, got, err, want)
		}
	}
}
