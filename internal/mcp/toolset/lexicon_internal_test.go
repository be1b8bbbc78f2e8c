package toolset

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

func searchable(name string, words ...string) *wasmtools.Tool {
	return &wasmtools.Tool{
		Namespace: "some", Name: name, Description: strings.Join(words, " "), Parameters: schema.MustCompile(`{"type":"object","properties":{"` + words[0] + `":{}}}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil }),
	}
}

func ranked(s *Set, query string) (names []string, all int) {
	best, all := s.View("", wasmtools.Everybody()).rank(query, 50)
	for _, e := range best {
		names = append(names, e.name)
	}
	return names, all
}

// TestSearchFollowsChanges compares the index that is carried from one generation to the next with a new one.
func TestSearchFollowsChanges(t *testing.T) {
	t.Parallel()
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 1))
	word := func() string { return fmt.Sprintf("%c%d", 'a'+random.IntN(26), random.IntN(60)) }
	some := func(name string) *wasmtools.Tool {
		return searchable(name, word(), word(), word(), "grün", word())
	}
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	s := New(table, Options{Search: SearchAlways})
	defer s.Close()
	var tools []*wasmtools.Tool
	for step := range 60 {
		switch {
		case len(tools) > 0 && step%3 == 1:
			n := random.IntN(len(tools))
			tools = slices.Delete(slices.Clone(tools), n, n+1)
		case len(tools) > 0 && step%3 == 2:
			tools = slices.Clone(tools)
			n := random.IntN(len(tools))
			tools[n] = some(tools[n].Name)
		default:
			tools = slices.Clone(tools)
			for range 3 {
				tools = append(tools, some(fmt.Sprintf("tool%d", len(tools)*100+step)))
			}
		}
		if err := table.Replace(tools, nil); err != nil {
			t.Fatal(err)
		}
		fresh := New(table, Options{Search: SearchAlways})
		for _, query := range []string{word(), word() + " " + word(), "grün", "tool", "e1", "5", "nothing"} {
			got, all := ranked(s, query)
			want, wantAll := ranked(fresh, query)
			if all != wantAll || !slices.Equal(got, want) {
				t.Errorf("seed %d, step %d: %q finds %q of %d, want %q of %d", seed, step, query, got, all, want, wantAll)
			}
		}
		fresh.Close()
	}
	if n := len(s.lexicon.words.blocks); n < 2 || n > maxBlocks {
		t.Errorf("the lexicon has %d blocks, want some, and %d at most", n, maxBlocks)
	}
}

// TestLexiconForgets has a tool whose words are new each time: the words of older versions are dropped.
func TestLexiconForgets(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	s := New(table, Options{Search: SearchAlways})
	defer s.Close()
	number, most := 0, 0
	for range 40 {
		var tools []*wasmtools.Tool
		for i := range 20 {
			words := []string{"fresh"}
			for range 200 {
				number++
				words = append(words, fmt.Sprintf("word%d", number))
			}
			tools = append(tools, searchable(fmt.Sprint("t", i), words...))
		}
		if err := table.Replace(tools, nil); err != nil {
			t.Fatal(err)
		}
		if got, all := ranked(s, fmt.Sprintf("word%d", number)); all == 0 || got[0] != "some-t19" {
			t.Errorf("after %d words: got %q of %d, want the tool with the newest word first", number, got, all)
		}
		most = max(most, s.lexicon.words.size())
	}
	if most > 3*fewWords {
		t.Errorf("%d words were kept, want %d at most: each version of the tools has 4,000", most, 3*fewWords)
	}
}

// BenchmarkSearchAfterChange measures the first search after one of many tools has changed, and after all have.
func BenchmarkSearchAfterChange(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		var tools []*wasmtools.Tool
		for i := range n {
			tools = append(tools, searchable(fmt.Sprintf("tool%d", i), "weather", fmt.Sprint("city", i), "of some days, and how sure it is, in any language"))
		}
		for _, changed := range []int{1, n} {
			b.Run(fmt.Sprintf("%d of %d", changed, n), func(b *testing.B) {
				table, err := wasmtools.NewRouteTable(tools...)
				if err != nil {
					b.Fatal(err)
				}
				s := New(table, Options{Search: SearchAlways})
				defer s.Close()
				for b.Loop() {
					b.StopTimer()
					if changed == n {
						s.Close()
						s = New(table, Options{Search: SearchAlways})
					} else {
						ranked(s, "weather")
						next := slices.Clone(tools)
						next[n/2] = searchable(next[n/2].Name, "weather")
						if err := table.Replace(next, nil); err != nil {
							b.Fatal(err)
						}
					}
					b.StartTimer()
					ranked(s, "weather")
				}
			})
		}
	}
}
