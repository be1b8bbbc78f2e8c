package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog/internal/precedence"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// TestStartOrder delivers the files of the first scan in every order. Some want the same paths. In the end, the same files must be served as if they
// had come in their natural order.
func TestStartOrder(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	answer := testkit.Fixture(t, "catalog/answer")
	type candidate struct {
		path      string
		tools     string // each letter is a tool
		described bool
		turn      int
	}
	load := func(c candidate) *module {
		var tools []string
		for _, name := range c.tools {
			tools = append(tools, fmt.Sprintf(`{"name":"%c","description":"Does it.","parameters":{"type":"object"}}`, name))
		}
		content, err := wasmbin.SetCustom(answer, manifest.Section, []byte(`{"abi":1,"tools":[`+strings.Join(tools, ",")+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		m, err := toolfile.Load(engine, content, toolfile.Place{Source: c.path})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Build(nil, nil); err != nil {
			t.Fatal(err)
		}
		return &module{Module: m, first: true, described: c.described}
	}
	// result returns which file serves what if the files come in this order.
	result := func(arrivals []candidate) (served []string) {
		s := newIndex(nil)
		defer s.close()
		s.starting = true
		turns := map[string]int{}
		for _, c := range arrivals {
			turns[c.path] = c.turn
		}
		s.turn = func(path string) int { return turns[path] }
		for _, c := range arrivals {
			s.offer(s.at(c.path), load(c))
			s.promote()
		}
		for _, tool := range s.tools.all() {
			served = append(served, tool.Name+" of "+tool.Source)
		}
		waiting := len(s.waiting)
		for _, f := range s.files {
			if (f.serving == nil) != (f.refused != nil) || (f.waiting == nil) != (f.serving != nil) {
				t.Errorf("%s: serving %t, waiting %t, refused %v", f.name, f.serving != nil, f.waiting != nil, f.refused)
			}
			if f.waiting != nil {
				waiting--
			}
		}
		if waiting != 0 {
			t.Errorf("%d more files are listed as waiting than have a waiting module", waiting)
		}
		slices.Sort(served)
		return served
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		var all []candidate
		for i := range 7 {
			tools := ""
			for _, letter := range random.Perm(6)[:1+random.IntN(3)] {
				tools += string(rune('a' + letter))
			}
			all = append(all, candidate{fmt.Sprintf("%d.wasm", i), tools, random.IntN(3) == 0, random.IntN(3)})
		}
		ordered := slices.Clone(all)
		slices.SortStableFunc(ordered, func(a, b candidate) int {
			switch {
			case a.turn != b.turn:
				return a.turn - b.turn
			case a.described == b.described:
				return 0
			case a.described:
				return 1
			}
			return -1
		})
		want := result(ordered)
		for range 10 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if got := result(all); !slices.Equal(got, want) {
				t.Fatalf("%v come in this order: got %q, want %q", all, got, want)
			}
		}
	}
}

// TestServedKeeps checks which files take a path from a file that is served. At the start, their order decides. After the start, no file does.
func TestServedKeeps(t *testing.T) {
	t.Parallel()
	first, later := &module{first: true}, &module{}
	s := newIndex(nil)
	s.turn = precedence.Precedence{"kept/a": {"kept/z"}}.Turns([]string{"kept/a", "kept/x", "kept/z"})
	for _, c := range []struct {
		name        string
		path        string
		module      *module
		other       string
		otherModule *module
		want        bool
	}{
		{"earlier", "a", first, "b", first, true},
		{"later", "b", first, "a", first, false},
		{"with a manifest", "b", first, "a", &module{first: true, described: true}, true},
		{"without a manifest", "a", &module{first: true, described: true}, "b", first, false},
		{"kept before", "kept/z", &module{first: true, described: true}, "kept/a", first, true},
		{"waited before", "kept/a", first, "kept/z", &module{first: true, described: true}, false},
		{"waited for another", "kept/a", first, "kept/x", first, false},
		{"kept from another", "kept/z", first, "kept/x", first, true},
		{"waited before, but is not in the first listing", "kept/z", later, "kept/a", first, false},
		{"not in the first listing", "a", later, "b", first, false},
		{"other is not in the first listing", "a", first, "b", later, false},
	} {
		if got := s.precedes(c.path, c.module, c.other, c.otherModule); got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
}

// TestKeeperStaysNoted: if this start has not read a file that keeps a path from another, the next start must know of it, too.
func TestKeeperStaysNoted(t *testing.T) {
	t.Parallel()
	s := newIndex(nil)
	defer s.close()
	s.noted = precedence.Precedence{"a": {"gone", "z"}}
	keeper := s.at("z")
	content, err := wasmbin.SetCustom(testkit.Fixture(t, "catalog/answer"), manifest.Section, []byte(`{"abi":1,"tools":[{"name":"a","description":"Does it.","parameters":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := toolfile.Load(sandboxtest.Engine(t, sandbox.Config{}), content, toolfile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Build(nil, nil); err != nil {
		t.Fatal(err)
	}
	if s.offer(s.at("a"), &module{Module: m}) {
		t.Error("the file that waited is served")
	}
	if got, want := s.precedence(), (precedence.Precedence{"a": {"z"}}); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	keeper.read = "v1"
	s.endWait("z")
	if taken := s.promote(); len(taken) != 1 || len(s.precedence()) > 0 {
		t.Errorf("%d files take paths that the keeper does not want; noted: %v", len(taken), s.precedence())
	}
}

// TestManyWait checks that a new file does not cause a close look at all waiting files, of which there can be thousands: if a large directory
// contains a copy of itself, each file of the copy waits. It is not parallel, because AllocsPerRun counts what the whole process allocates.
func TestManyWait(t *testing.T) {
	engine := sandboxtest.Engine(t, sandbox.Config{})
	content := testkit.Fixture(t, "catalog/answer")
	content, err := wasmbin.SetCustom(content, manifest.Section, []byte(`{"abi":1,"tools":[{"name":"a","description":"Does it.","parameters":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := newIndex(nil)
	defer s.close()
	const files = 50
	for i := range files {
		m, err := toolfile.Load(engine, content, toolfile.Place{})
		if err == nil {
			err = m.Build(nil, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.offer(s.at(fmt.Sprint(i)), &module{Module: m})
	}
	if n := testing.AllocsPerRun(10, func() { s.promote() }); n > 0 {
		t.Errorf("a file that nobody waits for makes %v allocations, want none", n)
	}
	s.remove(s.files["0"])
	if taken := s.promote(); len(taken) != 1 || taken[0].key != "1" || len(s.waiting) != files-2 {
		t.Errorf("%d files take what has become free, and %d wait, want 1 and %d", len(taken), len(s.waiting), files-2)
	}
	if why := s.files["2"].refused; why == nil || len(s.released) > 0 {
		t.Errorf("the next file is refused with %v, want a reason, and no released path left", why)
	}
}
