package precedence_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "paths.json")
	if p, err := precedence.Read(name, "tools"); p != nil || err != nil {
		t.Errorf("without a file: got %v, %v", p, err)
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
		t.Errorf("record of another source: got %v, %v", p, err)
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

// TestTurns checks that the turns give a consistent order, whatever a record says.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		p    precedence.Precedence
		want [3]int // the turns of a, b and c
	}{
		{"nothing noted", nil, [3]int{1, 1, 1}},
		{"c kept a path from a", precedence.Precedence{"a": {"c"}}, [3]int{2, 1, 0}},
		{"the file that kept the path is gone", precedence.Precedence{"a": {"gone"}}, [3]int{1, 1, 1}},
		{"the waiting file is gone", precedence.Precedence{"gone": {"a"}}, [3]int{1, 1, 1}},
		{"a waiting file keeps a path from another", precedence.Precedence{"a": {"b"}, "b": {"c"}}, [3]int{2, 2, 0}},
		{"a circle", precedence.Precedence{"a": {"b"}, "b": {"c"}, "c": {"a"}}, [3]int{2, 2, 2}},
	} {
		turn := c.p.Turns([]string{"a", "b", "c"})
		if got := [3]int{turn("a"), turn("b"), turn("c")}; got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRecordDamaged checks that a record that can't be read is an error, and is not used.
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

// TestWith adds waits that contradict nothing, and removes others.
func TestWith(t *testing.T) {
	t.Parallel()
	type p = precedence.Precedence
	for _, test := range []struct {
		name        string
		p, with     p
		most        int
		want        p
		without     p
		wantWithout p
	}{
		{"nothing", nil, nil, 0, p{}, nil, p{}},
		{"others", p{"a": {"c"}}, p{"a": {"b", "d"}, "x": {"y"}}, 0, p{"a": {"b", "c", "d"}, "x": {"y"}}, p{"a": {"b", "z"}, "x": {"y"}, "z": {"a"}}, p{"a": {"c", "d"}}},
		{"itself", nil, p{"a": {"a"}}, 0, p{}, nil, p{}},
		{"the opposite", p{"a": {"b"}}, p{"b": {"a", "c"}}, 0, p{"a": {"b"}, "b": {"c"}}, p{"b": {"a"}}, p{"a": {"b"}, "b": {"c"}}},
		{"a circle", p{"a": {"b"}, "b": {"c"}}, p{"c": {"a"}, "d": {"a"}}, 0, p{"a": {"b"}, "b": {"c"}, "d": {"a"}}, nil, p{"a": {"b"}, "b": {"c"}, "d": {"a"}}},
		{"a cycle in the added waits", nil, p{"a": {"b"}, "b": {"c"}, "c": {"a"}}, 0, p{"a": {"b"}, "b": {"c"}}, nil, p{"a": {"b"}, "b": {"c"}}},
		{"more than there is room for", p{"z": {"y"}}, p{"a": {"b"}, "b": {"c"}}, 22, p{"z": {"y"}, "a": {"b"}}, p{"z": {"y"}}, p{"a": {"b"}}},
	} {
		before := maps.Clone(test.p)
		got, full := test.p.Within(test.with, cmp.Or(test.most, math.MaxInt))
		if (full != nil) != (test.most > 0) {
			t.Errorf("%s: got the error %v", test.name, full)
		}
		if !got.Equal(test.want) || !test.p.Equal(before) {
			t.Errorf("%s: got %v of %v, want %v", test.name, got, test.p, test.want)
		}
		if left := got.Without(test.without); !left.Equal(test.wantWithout) || !got.Equal(test.want) {
			t.Errorf("%s: without %v got %v, want %v", test.name, test.without, left, test.wantWithout)
		}
	}
}

// TestDecode reads untrusted records: quickly, and without cycles in the result.
func TestDecode(t *testing.T) {
	t.Parallel()
	chain, star, mesh := precedence.Precedence{}, precedence.Precedence{}, precedence.Precedence{}
	for i := range 10_000 {
		chain[fmt.Sprintf("%06d", i)] = []string{fmt.Sprintf("%06d", max(i-1, 0))}
		star["a"] = append(star["a"], fmt.Sprint(i))
	}
	for i := range 120 {
		for j := range 120 {
			mesh[fmt.Sprint(i)] = append(mesh[fmt.Sprint(i)], fmt.Sprint(j))
		}
	}
	for name, p := range map[string]precedence.Precedence{"a chain": chain, "a star": star, "a mesh": mesh} {
		value, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got, err := precedence.Decode(value)
		if took := time.Since(began); err != nil || took > 5*time.Second {
			t.Errorf("%s: decoded in %v, %v", name, took, err)
		}
		again, err := got.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if same, err := precedence.Decode(again); err != nil || !same.Equal(got) {
			t.Errorf("%s: a second reading differs (%v)", name, err)
		}
	}
}

// FuzzDecode checks that no record causes a panic, and that a decoded record stays the same when it is encoded and decoded again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "\x00", "\x01{", "\x01[]", "\x02{}", "\x01null", "\x01" + `{"waits_for":{"a":["b","c"],"b":["a"],"":[""]}}`, "\x01" + `{"waits_for":{"a\ud800":["\u0000",null]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := precedence.Decode(value)
		if err != nil {
			return
		}
		again, err := p.Encode()
		if err != nil {
			return // it is too long
		}
		if same, err := precedence.Decode(again); err != nil || !same.Equal(p) {
			t.Errorf("got %v and then %v, %v", p, same, err)
		}
	})
}
