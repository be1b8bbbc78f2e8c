package catalog_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// awaitState waits for a state of a catalog for which ok returns true.
func awaitState(t testing.TB, c *catalog.Catalog, what string, good func(catalog.State) bool) catalog.State {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s := c.State()
		if good(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s\n%+v", what, s)
		}
	}
}

// TestState checks the stage of each file, what is wrong, and since when it has been wrong.
func TestState(t *testing.T) {
	t.Parallel()
	began := time.Now()
	m := newMemory()
	m.problems = []catalog.Problem{{Name: "locked", Err: errors.New("is locked")}}
	m.set("a.wasm", version(t, "v0001", "", "a"), nil)
	m.set("b.wasm", version(t, "v0001", "", "a"), nil) // waits for a.wasm
	m.set("c.wasm", version(t, "v0001", "", "c"), nil)
	m.set("d.wasm", []byte("no module"), nil)
	c := of(t, m, options{Engine: endless(t), Poll: 20 * time.Millisecond}, catalog.Open)
	first := awaitState(t, c, "refusals", func(s catalog.State) bool { return len(s.Refused) == 3 })
	m.set("c.wasm", []byte("no module either"), nil) // its first version is served
	m.set("e.wasm", testkit.Fixture(t, "wat/hostile/describe_spin"), nil)
	m.set("f.wasm", nil, func(f *stored) { f.Settling = time.Hour })
	want := map[catalog.Stage]int{catalog.StageServed: 1, catalog.StageRefused: 3, catalog.StageDescribing: 1, catalog.StageSettling: 1}
	s := awaitState(t, c, fmt.Sprint(want), func(s catalog.State) bool { return maps.Equal(s.Files, want) })
	if s.Served != 2 || s.Awaited != 0 || len(s.Sources) != 1 || s.Sources[0].Place != "memory:." || s.Sources[0].Listed.Before(began) || s.Closed {
		t.Errorf("got %+v, want 2 files served and none awaited", s)
	}
	if len(s.Loading) != 1 || s.Loading[0].Source != "memory:e.wasm" || s.Loading[0].Stage != catalog.StageDescribing || s.Loading[0].Since.Before(began) {
		t.Errorf("loading: got %+v, want e.wasm", s.Loading)
	}
	refused := []catalog.Refused{
		{Source: "memory:b.wasm", Err: errors.New("path /a is taken"), Waits: true},
		{Source: "memory:c.wasm", Err: errors.New("wasm"), Served: true},
		{Source: "memory:d.wasm", Err: errors.New("wasm")},
		{Source: "memory:locked", Err: errors.New("is locked")},
	}
	if len(s.Refused) != len(refused) {
		t.Fatalf("refused: got %+v", s.Refused)
	}
	since := map[string]time.Time{}
	for _, r := range first.Refused {
		since[r.Source] = r.Since
	}
	for i, want := range refused {
		got := s.Refused[i]
		if got.Source != want.Source || got.Waits != want.Waits || got.Served != want.Served || !strings.Contains(got.Err.Error(), want.Err.Error()) || got.Since.Before(began) {
			t.Errorf("refused: got %+v, want %+v", got, want)
		}
		if before, ok := since[got.Source]; ok && got.Since != before {
			t.Errorf("%s is listed as refused since %v, and was listed before as refused since %v", got.Source, got.Since, before)
		}
	}
	closeNow(t, c)
	if s := c.State(); !s.Closed || s.Files != nil {
		t.Errorf("a closed catalog: got %+v", s)
	}
}

// TestStateHammer asks for the state while files come and go, and while the catalog is closed.
func TestStateHammer(t *testing.T) {
	t.Parallel()
	m := newMemory()
	c, _ := openMemory(t, m, catalog.Open)
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for !c.State().Closed {
			}
		})
	}
	for i := range 20 {
		m.set(fmt.Sprintf("%d.wasm", i%3), version(t, fmt.Sprintf("v%04d", i), "", "a"), nil)
		awaitState(t, c, "a version", func(s catalog.State) bool { return s.Served == 1 && len(s.Loading) == 0 })
	}
	closeNow(t, c)
	askers.Wait()
}

// BenchmarkState measures the state of 1,000 files.
func BenchmarkState(b *testing.B) {
	directory := b.TempDir()
	fill(b, directory, 1000)
	c := open(b, options{Directory: directory, Poll: time.Hour})
	for b.Loop() {
		if s := c.State(); s.Served != 1000 {
			b.Fatal(s)
		}
	}
}
