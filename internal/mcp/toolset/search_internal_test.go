package toolset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestSearchesTakeTurns makes a search wait while others run, but not for too long.
func TestSearchesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, err := wasmtools.NewRouteTable()
		if err != nil {
			t.Fatal(err)
		}
		s := New(table, Options{Search: SearchAlways})
		defer s.Close()
		for range cap(s.searches) {
			if err := s.enterSearch(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		for want, ctx := range map[wasmtools.Code]context.Context{wasmtools.CodeOverloaded: t.Context(), wasmtools.CodeCancelled: gone} {
			if err, ok := errors.AsType[*wasmtools.Error](s.enterSearch(ctx)); !ok || err.Code != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		go func() { <-s.searches }()
		if err := s.enterSearch(t.Context()); err != nil {
			t.Errorf("after one search has ended: got %v", err)
		}
	})
}

// TestSearchCostsWhatChanged checks that the first search after a change processes only the words and descriptions of changed tools, among few
// tools and among many.
func TestSearchCostsWhatChanged(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	for _, many := range []int{1000, 10_000} {
		var tools []*wasmtools.Tool
		for n := range many {
			tools = append(tools, searchable(fmt.Sprintf("tool%d", n), "weather", fmt.Sprint("city", n)))
		}
		table, err := wasmtools.NewRouteTable(tools...)
		if err != nil {
			t.Fatal(err)
		}
		s := New(table, Options{Search: SearchAlways})
		defer s.Close()
		ranked(s, "weather")
		for _, step := range []struct {
			name          string
			change        func(next []*wasmtools.Tool) []*wasmtools.Tool
			tools, listed int // how many tools have their words looked at, and how many words are new
		}{
			{"one is replaced", func(next []*wasmtools.Tool) []*wasmtools.Tool {
				next[5] = searchable("tool5", "rain", "new")
				return next
			}, 1, 2},
			{"one has come", func(next []*wasmtools.Tool) []*wasmtools.Tool { return append(next, searchable("last", "rain")) }, 1, 1},
			{"one has gone", func(next []*wasmtools.Tool) []*wasmtools.Tool { return next[1:] }, 0, 0},
			{"none has changed", func(next []*wasmtools.Tool) []*wasmtools.Tool { return next }, 0, 0},
		} {
			before := map[*indexed]bool{}
			for _, e := range s.made.Current().entries {
				before[&e.words.list[0]] = true
			}
			words := s.lexicon.words.size()
			tools = step.change(slices.Clone(tools))
			if err := table.Replace(tools, nil); err != nil {
				t.Fatal(err)
			}
			if got, _ := ranked(s, "rain weather"); len(got) == 0 {
				t.Fatal("nothing is found")
			}
			made := 0
			for _, e := range s.made.Current().entries {
				if !before[&e.words.list[0]] {
					made++
				}
			}
			if got := s.lexicon.words.size() - words; made != step.tools || got != step.listed {
				t.Errorf("%d tools, %s: the words of %d were looked at and %d words are new, want %d and %d", many, step.name, made, got, step.tools, step.listed)
			}
		}
	}
}
