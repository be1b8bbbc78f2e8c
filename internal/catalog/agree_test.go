package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	inmemory "github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A member is one of several servers that share a state. It has the sources one and two.
type member struct {
	*area
	one, two *memory
	c        *catalog.Catalog
}

// newMember starts a server. The names are those of its first files.
func newMember(t *testing.T, engine *sandbox.Engine, paths state.Space, one, two []string) *member {
	t.Helper()
	m := &member{area: newArea(t)}
	m.engine, m.paths = engine, paths
	m.one, m.two = m.source("/one", "v0001", one...), m.source("/two", "v0002", two...)
	m.c = m.catalog(m.one, m.two)
	await(t, m.c, "it is ready", func(*wasmtools.Generation) bool { return m.c.Ready() == nil })
	return m
}

func newPaths(t *testing.T) state.Space {
	store := inmemory.New()
	t.Cleanup(func() { store.Close() })
	return store.Space(catalog.PathsSpace)
}

// recorded returns the record that servers share, or "".
func recorded(t *testing.T, paths state.Space) string {
	t.Helper()
	e, ok, err := paths.Get(t.Context(), "files", state.MaxValue)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return strings.TrimPrefix(string(e.Value), "\x01")
}

func awaitRecord(t *testing.T, paths state.Space, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); recorded(t, paths) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the record is %s, want %s", recorded(t, paths), want)
		}
	}
}

// TestAgree has two servers that see two files in opposite orders. Both files want the same path, and all servers serve the file that the first
// server saw first.
func TestAgree(t *testing.T) {
	t.Parallel()
	engine, paths := sandboxtest.Engine(t, sandbox.Config{}), newPaths(t)
	first, other := newMember(t, engine, paths, nil, nil), newMember(t, engine, paths, nil, nil)
	first.put(first.two, "x2.wasm", "v0002")
	awaitAnswer(t, first.c, "/x", "v0002")
	first.put(first.one, "x1.wasm", "v0001")
	awaitTable(t, first.c, []string{"/x"}, []string{"one:x1.wasm"})
	const oneWaits, twoWaits = `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]}}`, `{"waits_for":{"/two//x2.wasm":["/one//x1.wasm"]}}`
	awaitRecord(t, paths, oneWaits)

	other.put(other.one, "x1.wasm", "v0001")
	awaitAnswer(t, other.c, "/x", "v0001") // the other file has not arrived here yet
	other.put(other.two, "x2.wasm", "v0002")
	awaitTable(t, other.c, []string{"/x"}, []string{"one:x1.wasm"})
	awaitAnswer(t, other.c, "/x", "v0002")
	if got := recorded(t, paths); got != oneWaits {
		t.Errorf("the record is %s", got)
	}

	later := newMember(t, engine, paths, []string{"x1.wasm"}, []string{"x2.wasm"}) // the order of the sources would favor the other one
	awaitTable(t, later.c, []string{"/x"}, []string{"one:x1.wasm"})
	awaitAnswer(t, later.c, "/x", "v0002")

	// A server that has only the waiting file takes nothing from the others, and gives way once it has both files.
	half := newMember(t, engine, paths, []string{"x1.wasm"}, nil)
	awaitAnswer(t, half.c, "/x", "v0001")
	half.put(half.two, "x2.wasm", "v0002")
	awaitAnswer(t, half.c, "/x", "v0002")
	awaitAnswer(t, later.c, "/x", "v0002")
	awaitRecord(t, paths, oneWaits)

	// Once the first file is gone everywhere, the other one gets the path, and keeps it.
	all := []*member{first, other, later, half}
	for _, m := range all {
		m.two.remove("x2.wasm")
		awaitAnswer(t, m.c, "/x", "v0001")
	}
	awaitRecord(t, paths, "")
	for _, m := range all {
		m.put(m.two, "x2.wasm", "v0003")
		awaitTable(t, m.c, []string{"/x"}, []string{"two:x2.wasm"})
	}
	awaitRecord(t, paths, twoWaits)
}

// TestAgreeFromFile lets servers that had their records on disk share a state: nothing is lost.
func TestAgreeFromFile(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001"), a.source("/two", "v0002", "x2.wasm")
	c := a.catalog(one, two)
	awaitAnswer(t, c, "/x", "v0002")
	await(t, c, "it is ready", func(*wasmtools.Generation) bool { return c.Ready() == nil }) // until then, the order of the sources decides
	a.put(one, "x1.wasm", "v0001")
	awaitTable(t, c, []string{"/x"}, []string{"one:x1.wasm"})
	closeNow(t, c)
	a.paths = newPaths(t)
	c = a.catalog(one, two)
	awaitTable(t, c, []string{"/x"}, []string{"one:x1.wasm"})
	awaitAnswer(t, c, "/x", "v0002")
	awaitRecord(t, a.paths, `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]}}`)
	closeNow(t, c)
	if files, err := os.ReadDir(a.records); err != nil || len(files) != 1 { // for `toolsrv check`, and for a start without the state
		t.Errorf("the folder of records has %v, %v", files, err)
	}
}

// TestAgreeForeign lets somebody else write to the record.
func TestAgreeForeign(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&many, `"%s//%d":["%[1]s//%d","/one//x1.wasm"],`, strings.Repeat("a", 20), i, i+1)
	}
	const rest = `,"nobody//a":["nobody//b"]`
	for name, test := range map[string]struct {
		record string
		want   string // the record after x1 has begun to wait for x2; "" if it is unchanged
	}{
		"nothing":         {"", `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]}}`},
		"no JSON":         {"\x01{", `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]}}`},
		"another type":    {"\x01[1]", `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]}}`},
		"no form":         {"\x00", `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]}}`},
		"a newer form":    {"\x02{}", ""},
		"itself":          {`{"waits_for":{"/one//x1.wasm":["/one//x1.wasm"],"/two//x2.wasm":["/two//x2.wasm"]}}`, `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]}}`},
		"odd names":       {`{"waits_for":{"":[""],"//":["//","/one//"],"/one//":["x"]}}`, `{"waits_for":{"//":["/one//"],"/one//":["x"],"/one//x1.wasm":["/two//x2.wasm"]}}`},
		"nobody's source": {`{"waits_for":{"nobody//a":["nobody//b"]}}`, `{"waits_for":{"/one//x1.wasm":["/two//x2.wasm"]` + rest + `}}`},
		"much":            {`{"waits_for":{` + strings.TrimSuffix(many.String(), ",") + `}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths := newPaths(t)
			record := test.record
			if strings.HasPrefix(record, "{") {
				record = "\x01" + record
			}
			if _, err := paths.Set(t.Context(), "files", []byte(record), state.Any, state.SetOptions{}); err != nil {
				t.Fatal(err)
			}
			m := newMember(t, sandboxtest.Engine(t, sandbox.Config{}), paths, nil, []string{"x2.wasm"})
			awaitAnswer(t, m.c, "/x", "v0002")
			m.put(m.one, "x1.wasm", "v0001")
			awaitTable(t, m.c, []string{"/x"}, []string{"one:x1.wasm"})
			if test.want != "" {
				awaitRecord(t, paths, test.want)
			}
			awaitAnswer(t, m.c, "/x", "v0002")
		})
	}
}

// TestAgreeFull fills the record: the log says so, and says when there is room again.
func TestAgreeFull(t *testing.T) {
	t.Parallel()
	paths := newPaths(t)
	const form, begins, rest = "\x01", `{"waits_for":{`, `"nobody//a":["nobody//b"]`
	put := func(record string) {
		t.Helper()
		if _, err := paths.Set(t.Context(), "files", []byte(form+begins+record+"}}"), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put(`"nobody//a":["` + strings.Repeat("b", 950_000) + `"]`)
	m := newMember(t, sandboxtest.Engine(t, sandbox.Config{}), paths, nil, []string{"x2.wasm"})
	awaitAnswer(t, m.c, "/x", "v0002")
	m.put(m.one, "x1.wasm", "v0001")
	awaitTable(t, m.c, []string{"/x"}, []string{"one:x1.wasm"})
	m.log.Wait(t, "is full")
	put(rest)
	awaitRecord(t, paths, begins+`"/one//x1.wasm":["/two//x2.wasm"],`+rest+"}}")
	m.log.Wait(t, "has room again")
	if full, over := m.log.Count("level=WARN", "is full", "943713 bytes", "/one//x1.wasm"), m.log.Count("level=INFO", "has room again"); full != 1 || over != 1 {
		t.Errorf("the log says %d times that the record is full, and %d times that it has room again: %s", full, over, m.log)
	}
}

// TestAgreeUnread makes the record unreadable: the log says so, and says when it can be read again.
func TestAgreeUnread(t *testing.T) {
	t.Parallel()
	paths := newPaths(t)
	m := newMember(t, sandboxtest.Engine(t, sandbox.Config{}), paths, nil, nil)
	for i, record := range []string{"\x02{}", "\x01{}", "\x01{", "\x01[]", "\x01{}"} {
		if _, err := paths.Set(t.Context(), "files", []byte(record), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		unread, read := []int{1, 1, 2, 2, 2}[i], []int{0, 1, 1, 1, 2}[i]
		m.log.WaitFor(t, fmt.Sprintf("the record %q", record), func(string) bool {
			return m.log.Count("level=WARN", "can't be read") == unread && m.log.Count("level=INFO", "can be read again") == read
		})
	}
}

// A slow space takes a while for each write, like one on another machine, and counts the writes that were too late.
type slow struct {
	state.Space
	late *atomic.Int64
}

func (s slow) Set(ctx context.Context, key string, value []byte, expect int64, o state.SetOptions) (uint64, error) {
	time.Sleep(25 * time.Millisecond)
	version, err := s.Space.Set(ctx, key, value, expect, o)
	if errors.Is(err, state.ErrConflict) {
		s.late.Add(1)
	}
	return version, err
}

// TestAgreeMany lets many servers write different things to the record at the same moment: all of them succeed.
func TestAgreeMany(t *testing.T) {
	t.Parallel()
	const servers = 24
	engine, paths := sandboxtest.Engine(t, sandbox.Config{}), slow{newPaths(t), new(atomic.Int64)}
	var all []*member
	for i := range servers {
		all = append(all, newMember(t, engine, paths, nil, []string{fmt.Sprintf("%c/x2.wasm", 'a'+i)}))
	}
	for i, m := range all {
		name := fmt.Sprintf("%c/x1.wasm", 'a'+i)
		m.put(m.one, name, "v0001")
	}
	deadline := time.Now().Add(time.Minute)
	for ; strings.Count(recorded(t, paths), "/one//") < servers; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the record is %s", recorded(t, paths))
		}
	}
	t.Logf("%d servers were too late %d times", servers, paths.late.Load())
}

// TestAgreeEarlier lets one server serve a file's earlier version while the new one waits. A server that never had the earlier version serves another
// file at that path. Neither server changes the record over and over, and once the new version can be served, all servers serve it.
func TestAgreeEarlier(t *testing.T) {
	t.Parallel()
	engine, paths := sandboxtest.Engine(t, sandbox.Config{}), newPaths(t)
	put := func(m *member, to *memory, name, answer string, tools ...string) {
		to.set(name, version(m.t, answer, "", tools...), nil)
	}
	first := newMember(t, engine, paths, nil, nil)
	put(first, first.one, "a.wasm", "a0001", "z")
	put(first, first.two, "b.wasm", "b0001", "x")
	awaitAnswer(t, first.c, "/z", "a0001")
	awaitAnswer(t, first.c, "/x", "b0001")
	put(first, first.one, "a.wasm", "a0002", "x", "z")
	awaitTable(t, first.c, []string{"/x", "/z"}, []string{"one:a.wasm"})
	put(first, first.two, "c.wasm", "c0001", "z")
	awaitTable(t, first.c, []string{"/x", "/z"}, []string{"one:a.wasm", "two:c.wasm"})
	const both = `{"waits_for":{"/one//a.wasm":["/two//b.wasm"],"/two//c.wasm":["/one//a.wasm"]}}`
	awaitRecord(t, paths, both)

	later := newMember(t, engine, paths, nil, nil)
	put(later, later.one, "a.wasm", "a0002", "x", "z")
	put(later, later.two, "b.wasm", "b0001", "x")
	put(later, later.two, "c.wasm", "c0001", "z")
	awaitTable(t, later.c, []string{"/x", "/z"}, []string{"one:a.wasm"})
	awaitAnswer(t, later.c, "/z", "c0001")
	awaitAnswer(t, first.c, "/z", "a0001")
	before, _, err := paths.Get(t.Context(), "files", state.MaxValue)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // enough time for many writes
	after, _, err := paths.Get(t.Context(), "files", state.MaxValue)
	if err != nil || after.Version > before.Version+1 {
		t.Errorf("the record goes from version %d to %d (%v): %s", before.Version, after.Version, err, after.Value)
	}
	for _, m := range []*member{first, later} {
		m.two.remove("b.wasm")
		awaitAnswer(t, m.c, "/x", "a0002")
		awaitAnswer(t, m.c, "/z", "a0002")
	}
}

// TestAgreeAlways adds, changes and removes files at three servers, in a different order at each. Whatever the orders, all servers serve the same in
// the end.
func TestAgreeAlways(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random, paths := rand.New(rand.NewPCG(seed, 1)), newPaths(t)
			var all []*member
			for range 3 {
				all = append(all, newMember(t, engine, paths, nil, nil))
			}
			has := map[int][]string{} // the tools of the existing files
			for round := range 12 {
				type change struct {
					file   int
					module []byte // nil: it goes
				}
				var changes []change
				for _, i := range random.Perm(8)[:1+random.IntN(5)] {
					// A new version has the same tools as the old one. With other tools it might have to wait, and then only the servers that had the
					// old version would serve that.
					switch {
					case has[i] == nil:
						for _, letter := range random.Perm(5)[:1+random.IntN(3)] {
							has[i] = append(has[i], string(rune('a'+letter)))
						}
					case random.IntN(2) == 0:
						delete(has, i)
						changes = append(changes, change{i, nil})
						continue
					}
					changes = append(changes, change{i, version(t, fmt.Sprintf("v%d%03d", i, round), "", has[i]...)})
				}
				for _, m := range all {
					for _, i := range random.Perm(len(changes)) {
						to, name := []*memory{m.one, m.two}[changes[i].file%2], fmt.Sprintf("%d.wasm", changes[i].file)
						if changes[i].module == nil {
							to.remove(name)
						} else {
							to.set(name, changes[i].module, nil)
						}
						time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond) // so that some servers see one change, and others several
					}
				}
				served := func(m *member) string {
					var list []string
					for _, route := range m.c.Table().Current().Routes() {
						list = append(list, route.Path+" of "+route.Tool.Source+" "+route.Tool.Digest[:6])
					}
					return strings.Join(append(list, sources(m.c.Table().Current())...), "\n")
				}
				deadline := time.Now().Add(30 * time.Second)
				for same := 0; same < 10; time.Sleep(20 * time.Millisecond) {
					if same++; !slices.ContainsFunc(all, func(m *member) bool { return !m.c.Synced() }) && served(all[0]) == served(all[1]) && served(all[0]) == served(all[2]) {
						continue
					}
					if same = 0; time.Now().After(deadline) {
						t.Fatalf("round %d: they do not agree.\n%s\n\n%s\n\n%s\n\n%s", round, served(all[0]), served(all[1]), served(all[2]), recorded(t, paths))
					}
				}
			}
		})
	}
}
