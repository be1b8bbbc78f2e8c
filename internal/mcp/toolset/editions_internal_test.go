package toolset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

func principalOf(t *testing.T, scopes ...string) *wasmtools.Principal {
	t.Helper()
	p, err := wasmtools.NewPrincipal("test", "test", scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEditions compares editions that are carried from one generation to the next with those of new views. Some are not used for many generations,
// during which more paths change than are kept.
func TestEditions(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	const seed = 3
	random := rand.New(rand.NewPCG(seed, 0))
	namespaces := []string{"a", "a/b", "ab", "c"}
	some := func(n int) *wasmtools.Tool {
		x := searchable(fmt.Sprintf("t%d", n), fmt.Sprintf("word%d", random.IntN(3)))
		x.Namespace = namespaces[n%len(namespaces)]
		return x
	}
	var tools []*wasmtools.Tool
	for n := range 200 {
		tools = append(tools, some(n))
	}
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	s := New(table, Options{})
	defer s.Close()
	approved := tools[4].Path()[1:] + "@" + tools[4].Fingerprint()
	callers := []*wasmtools.Principal{
		wasmtools.Everybody(), wasmtools.Nobody(), principalOf(t, "a"), principalOf(t, "**/t8"), principalOf(t, "c", "ab/t2"), principalOf(t, approved), principalOf(t, "a/*", approved),
	}
	last, differ := map[string]Edition{}, 0
	for step := range 400 {
		next := slices.Clone(tools)
		switch n := random.IntN(len(next)); random.IntN(6) {
		case 0:
			err = table.Disable(next[n].Path(), "")
		case 1:
			err = table.Enable([]string{"/", "/a", next[n].Path()}[random.IntN(3)])
		case 2:
			next = slices.Delete(next, n, n+1)
			err = table.Replace(next, nil)
		case 3:
			for i := range next {
				next[i] = some(i)
			}
			err = table.Replace(next, nil)
		default:
			tools[n] = some(n)
			next[n] = tools[n]
			err = table.Replace(next, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range random.IntN(6) {
			p, namespace := callers[random.IntN(len(callers))], []string{"", "a", "a/b", "none"}[random.IntN(4)]
			got, want := s.Edition(namespace, p), s.View(namespace, p).Edition()
			if got.List != want {
				t.Fatalf("seed %d, step %d: %q in %q has another edition than its view", seed, step, p.Scopes(), namespace)
			}
			key := fmt.Sprint(namespace, p.Scopes())
			if got.At < last[key].At {
				t.Fatalf("seed %d, step %d: an edition is older than the one before", seed, step)
			}
			if got.List != last[key].List {
				differ++
			}
			last[key] = got
		}
	}
	if differ < 100 {
		t.Errorf("only %d editions differed from those before: the test proves little", differ)
	}
}

// TestEditionsTakeLittle has more callers than editions are kept for, and namespaces that do not exist.
func TestEditionsTakeLittle(t *testing.T) {
	t.Parallel()
	table, err := wasmtools.NewRouteTable(searchable("add", "word"))
	if err != nil {
		t.Fatal(err)
	}
	s := New(table, Options{})
	defer s.Close()
	for n := range 100 {
		s.Edition(fmt.Sprint("made-up", n), principalOf(t, "some"))
	}
	if n := len(s.editions.known); n != 0 {
		t.Errorf("%d editions are kept of namespaces that have no tools", n)
	}
	most := 0
	for n := range maxEditions + 100 {
		s.Edition("", principalOf(t, fmt.Sprint("n", n)))
		most = max(most, len(s.editions.known))
	}
	if most > maxEditions {
		t.Errorf("%d editions were kept, want %d at most", most, maxEditions)
	}
	told := make(chan struct{}, 1)
	defer s.Subscribe(func() { told <- struct{}{} })()
	if err := table.Disable("/some/add", ""); err != nil {
		t.Fatal(err)
	}
	<-told
	if of := s.editions.of.generation; of != table.Current() {
		t.Error("an old generation is kept, although nobody uses it")
	}
}
