package switches_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// newTable returns a table of some tools.
func newTable(t *testing.T, paths ...string) *wasmtools.RouteTable {
	t.Helper()
	var tools []*wasmtools.Tool
	for _, path := range paths {
		tools = append(tools, gotool.New(path, "Does it.", func(context.Context, struct{}) (string, error) { return "", nil }))
	}
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// off returns the paths of the tools that are switched off.
func off(table *wasmtools.RouteTable) (paths []string) {
	for _, route := range table.Tools() {
		if !route.Enabled {
			paths = append(paths, strings.TrimPrefix(route.Path, "/"))
		}
	}
	return paths
}

func to(on bool, scopes ...string) (all []wasmtools.Switch) {
	for _, scope := range scopes {
		all = append(all, wasmtools.Switch{Scope: scope, Enabled: on, Reason: "because", By: "ann", Since: time.Now()})
	}
	return all
}

// TestApply makes changes one after another, and after each starts again with what was stored.
func TestApply(t *testing.T) {
	t.Parallel()
	paths := []string{"math/add", "math/div", "math/deep/root", "web/get"}
	store := memory.New()
	table := newTable(t, paths...)
	s, err := switches.Open(t.Context(), store, table)
	if err != nil {
		t.Fatal(err)
	}
	version := s.Version()
	for _, step := range []struct {
		name    string
		change  switches.Change
		changed bool
		off     string // now
		kept    string // what would be off after a restart
	}{
		{"one off", switches.Change{Set: to(false, "/math/add")}, true, "math/add", "math/add"},
		{"again", switches.Change{Set: to(false, "/math/add")}, false, "math/add", "math/add"},
		{"a namespace off", switches.Change{Set: to(false, "/math")}, true, "math/add math/deep/root math/div", "math/add math/deep/root math/div"},
		{"a tool of the namespace on", switches.Change{Set: to(true, "/math/div")}, true, "math/add math/deep/root", "math/add math/deep/root"},
		{"reset that one", switches.Change{Reset: []string{"/math/div"}}, true, "math/add math/deep/root math/div", "math/add math/deep/root math/div"},
		{"reset it again", switches.Change{Reset: []string{"/math/div"}}, false, "math/add math/deep/root math/div", "math/add math/deep/root math/div"},
		{"the namespace on, for now", switches.Change{Set: to(true, "/math"), Passing: true}, true, "", "math/add math/deep/root math/div"},
		{"a tool off, for now", switches.Change{Set: to(false, "/web/get"), Passing: true}, true, "web/get", "math/add math/deep/root math/div"},
		{"the same, to be kept", switches.Change{Set: to(false, "/web/get")}, true, "web/get", "math/add math/deep/root math/div web/get"},
		{"everything reset", switches.Change{Reset: []string{"/"}}, true, "", ""},
		{"several", switches.Change{Set: to(false, "/math/add", "/web")}, true, "math/add web/get", "math/add web/get"},
		{"everything off", switches.Change{Set: to(false, "/")}, true, "math/add math/deep/root math/div web/get", "math/add math/deep/root math/div web/get"},
		{"a namespace without tools", switches.Change{Set: to(true, "/later")}, true, "math/add math/deep/root math/div web/get", "math/add math/deep/root math/div web/get"},
	} {
		changed, err := s.Apply(t.Context(), step.change)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if changed != step.changed || strings.Join(off(table), " ") != step.off {
			t.Errorf("%s: changed is %v, and off are %s; want %v, %s", step.name, changed, off(table), step.changed, step.off)
		}
		if is := s.Version(); (is != version) != step.changed {
			t.Errorf("%s: the version is %s after %s", step.name, is, version)
		}
		version = s.Version()
		again := newTable(t, paths...)
		if _, err := switches.Open(t.Context(), store, again); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(off(again), " "); got != step.kept {
			t.Errorf("%s: after a restart %s are off, want %s", step.name, got, step.kept)
		}
		for _, one := range again.Current().Switches() {
			if one.By != "ann" || one.Reason != "because" || one.Since.IsZero() {
				t.Errorf("%s: the stored switch is %+v", step.name, one)
			}
		}
	}
	if _, ok := table.Current().Switch("/later/tool"); !ok {
		t.Error("a tool that comes later is not switched")
	}
}

// TestRefused makes changes that fail: then nothing has changed, neither in the table nor in the record.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := local.Open(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table := newTable(t, "math/add")
	s, err := switches.Open(t.Context(), store, table)
	if err != nil {
		t.Fatal(err)
	}
	expected := errors.New("another version")
	if _, err := s.Apply(t.Context(), switches.Change{Set: to(false, "/math"), Expect: func(version string) error {
		if version != "0" {
			t.Errorf("the version is %s", version)
		}
		return expected
	}}); !errors.Is(err, expected) || len(off(table)) > 0 {
		t.Errorf("a wrong expected version: got %v, and these tools are off: %s", err, off(table))
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), switches.Change{Set: to(false, "/math")}); !errors.Is(err, state.ErrUnavailable) || len(off(table)) > 0 {
		t.Errorf("a closed state: got %v, and these tools are off: %s", err, off(table))
	}
	if changed, err := s.Apply(t.Context(), switches.Change{Set: to(false, "/math"), Passing: true}); !changed || err != nil || len(off(table)) != 1 {
		t.Errorf("a change that is not stored: got %v, %v, and these tools are off: %s", changed, err, off(table))
	}

	nowhere, err := switches.Open(t.Context(), nil, newTable(t, "math/add"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nowhere.Apply(t.Context(), switches.Change{Set: to(false, "/math")}); !errors.Is(err, switches.ErrNotKept) {
		t.Errorf("without a state: got %v", err)
	}
	full, table := memory.New(), newTable(t, "math/add")
	s, err = switches.Open(t.Context(), full, table)
	if err != nil {
		t.Fatal(err)
	}
	var many switches.Change
	for i := range 1100 {
		many.Set = append(many.Set, wasmtools.Switch{Scope: fmt.Sprintf("/a%d", i), Reason: strings.Repeat("x", 1000)})
	}
	if _, err := s.Apply(t.Context(), many); !errors.Is(err, state.ErrTooLarge) || len(table.Current().Switches()) > 0 {
		t.Errorf("too many: got %v, and %d are switched", err, len(table.Current().Switches()))
	}
}

// TestForeignRecord has records that this version can't read: they are not changed, whatever is switched.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"a newer form": "\x02{}", "nothing": "", "no form": "\x00[]", "not JSON": "\x01[{", "other JSON": "\x01{\"a\":1}"} {
		store := memory.New()
		space := store.Space(switches.Space)
		if _, err := space.Set(t.Context(), "all", []byte(value), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		table := newTable(t, "math/add")
		s, err := switches.Open(t.Context(), store, table)
		if err == nil || s == nil {
			t.Errorf("%s: got %v, %v", name, s, err)
			continue
		}
		if _, err := s.Apply(t.Context(), switches.Change{Set: to(false, "/math")}); err == nil || len(off(table)) > 0 {
			t.Errorf("%s: a change: got %v, and these tools are off: %s", name, err, off(table))
		}
		if entry, _, _ := space.Get(t.Context(), "all", state.MaxValue); string(entry.Value) != value {
			t.Errorf("%s: the record has become %q", name, entry.Value)
		}
	}
}

// TestTwo lets two processes with one state switch at the same time: neither undoes changes of the other that it does not know of.
func TestTwo(t *testing.T) {
	t.Parallel()
	store := memory.New()
	var all []*switches.Switches
	tables := []*wasmtools.RouteTable{newTable(t, "a/x", "b/x"), newTable(t, "a/x", "b/x")}
	for _, table := range tables {
		s, err := switches.Open(t.Context(), store, table)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if _, err := all[0].Apply(t.Context(), switches.Change{Set: to(false, "/a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].Apply(t.Context(), switches.Change{Set: to(false, "/b")}); !errors.Is(err, switches.ErrChanged) || !slices.Equal(off(tables[1]), []string{"a/x"}) {
		t.Errorf("the second: got %v, and these tools are off: %s", err, off(tables[1]))
	}
	if _, err := all[1].Apply(t.Context(), switches.Change{Set: to(false, "/b")}); err != nil || len(off(tables[1])) != 2 {
		t.Errorf("once more: got %v, and these tools are off: %s", err, off(tables[1]))
	}
}

// TestFollow lets a process follow the switches of another one, in any order, narrow and wide: both have the same switches in force.
func TestFollow(t *testing.T) {
	t.Parallel()
	store := memory.New()
	paths := []string{"a/x", "a/y", "a/b/x", "a/b/y", "c/x"}
	scopes := []string{"/", "/a", "/a/x", "/a/y", "/a/b", "/a/b/x", "/c", "/c/x"}
	tables := []*wasmtools.RouteTable{newTable(t, paths...), newTable(t, paths...)}
	var all []*switches.Switches
	for _, table := range tables {
		s, err := switches.Open(t.Context(), store, table)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	ctx, end := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { all[1].Follow(ctx, nil) })
	told := make(chan struct{}, 1)
	defer tables[1].Subscribe(func(*wasmtools.Generation) {
		select {
		case told <- struct{}{}:
		default:
		}
	})()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		change := switches.Change{}
		if scope := scopes[random.IntN(len(scopes))]; random.IntN(3) == 0 {
			change.Reset = []string{scope}
		} else {
			change.Set = to(random.IntN(2) == 0, scope)
		}
		if _, err := all[0].Apply(ctx, change); err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 {
			continue // changes that come close together are put in force together
		}
		late := time.After(10 * time.Second)
		for !slices.Equal(off(tables[0]), off(tables[1])) {
			select {
			case <-told:
			case <-late:
				t.Fatalf("change %d, %+v: these tools are off: %s, and in the process that follows: %s", i, change, off(tables[0]), off(tables[1]))
			}
		}
	}
	end()
	following.Wait()
}

// TestHammer switches from many goroutines: at the end, the stored switches are in force.
func TestHammer(t *testing.T) {
	t.Parallel()
	store := memory.New()
	paths := []string{"a/x", "a/y", "b/x", "c"}
	table := newTable(t, paths...)
	s, err := switches.Open(t.Context(), store, table)
	if err != nil {
		t.Fatal(err)
	}
	scopes := []string{"/a", "/a/x", "/b", "/c", "/", "/a/y"}
	var done sync.WaitGroup
	for g := range 8 {
		done.Go(func() {
			for i := range 50 {
				scope := scopes[(g*7+i*5)%len(scopes)]
				c := switches.Change{Set: to((g+i)%2 == 0, scope)}
				if (g+i)%5 == 0 {
					c = switches.Change{Reset: []string{scope}}
				}
				if _, err := s.Apply(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	again := newTable(t, paths...)
	if _, err := switches.Open(t.Context(), store, again); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(off(table), off(again)) {
		t.Errorf("these tools are off: %s, and after a restart: %s", off(table), off(again))
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"math/add": "/math/add", "/math/add": "/math/add", "math": "/math", "math/": "/math", "math/*": "/math", "math/**": "/math", "/math/deep/*": "/math/deep",
		"*": "/", "**": "/", "/": "/", "/*": "/", "": "", "//": "", "math//add": "", "a b": "", "math/*/x": "", "**/add": "", "ma*": "", "..": "", strings.Repeat("x", 65): "", "a\x00": "", "ä": "",
	} {
		if got, err := switches.Scope(name); got != want && err == nil || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", name, got, err, want)
		}
	}
}
