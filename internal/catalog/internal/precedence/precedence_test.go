package precedence_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "paths.json")
	if p, err := precedence.Read(name, "tools"); p != nil || err != nil {
		t.Errorf("of no file: got %v, %v", p, err)
	}
	if p, err := precedence.Read(filepath.Join(os.Args[0], "paths.json"), "tools"); p != nil || err != nil {
		t.Errorf("below a file: got %v, %v", p, err)
	}
	if p, err := precedence.Read("", "tools"); p != nil || err != nil {
		t.Errorf("without a name: got %v, %v", p, err)
	}
	want := precedence.Precedence{"a.wasm": {"sub/b.wasm", "z.wasm"}}
	if err := want.Write(name, "tools"); err != nil {
		t.Fatal(err)
	}
	got, err := precedence.Read(name, "tools")
	if err != nil || !got.Equal(want) {
		t.Errorf("got %v, %v", got, err)
	}
	if p, err := precedence.Read(name, "elsewhere"); p != nil || err != nil {
		t.Errorf("of another source: got %v, %v", p, err)
	}
	for range 2 {
		if err := (precedence.Precedence{}).Write(name, "tools"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
	if err := want.Write(filepath.Join(name, "nowhere"), "tools"); err == nil {
		t.Error("written into a folder that does not exist")
	}
}

// TestTurns has the order be one for whatever stands in a record.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		p    precedence.Precedence
		want [3]int // of a, b, c
	}{
		{"nothing noted", nil, [3]int{1, 1, 1}},
		{"c kept a path from a", precedence.Precedence{"a": {"c"}}, [3]int{2, 1, 0}},
		{"who kept it is gone", precedence.Precedence{"a": {"gone"}}, [3]int{1, 1, 1}},
		{"who waited is gone", precedence.Precedence{"gone": {"a"}}, [3]int{1, 1, 1}},
		{"one that waits keeps another", precedence.Precedence{"a": {"b"}, "b": {"c"}}, [3]int{2, 2, 0}},
		{"a circle", precedence.Precedence{"a": {"b"}, "b": {"c"}, "c": {"a"}}, [3]int{2, 2, 2}},
	} {
		turn := c.p.Turns([]string{"a", "b", "c"})
		if got := [3]int{turn("a"), turn("b"), turn("c")}; got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRecordDamaged does without a record that can't be read.
func TestRecordDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for what, text := range map[string]string{"half": `{"source":`, "other JSON": `[1]`, "large": strings.Repeat(" ", 5<<20)} {
		name := filepath.Join(dir, what)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := precedence.Read(name, "tools"); p != nil || err == nil {
			t.Errorf("%s: got %v and no error", what, p)
		}
	}
	if p, err := precedence.Read(dir, "tools"); p != nil || err == nil {
		t.Errorf("a folder: got %v and no error", p)
	}
}
