package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	inmemory "github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A member is one of several servers with one state. It has the sources one and two.
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

// TestAgree has servers see two files that want one path in opposite order: all serve the one that the first server saw first.
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
	awaitAnswer(t, other.c, "/x", "v0001") // the other file is not here yet
	other.put(other.two, "x2.wasm", "v0002")
	awaitTable(t, other.c, []string{"/x"}, []string{"one:x1.wasm"})
	awaitAnswer(t, other.c, "/x", "v0002")
	if got := recorded(t, paths); got != oneWaits {
		t.Errorf("the record is %s", got)
	}

	later := newMember(t, engine, paths, []string{"x1.wasm"}, []string{"x2.wasm"}) // by the order of the sources it would be the other one
	awaitTable(t, later.c, []string{"/x"}, []string{"one:x1.wasm"})
	awaitAnswer(t, later.c, "/x", "v0002")

	// One that has only the file that waits takes nothing from the others, and gives way once it has both.
	half := newMember(t, engine, paths, []string{"x1.wasm"}, nil)
	awaitAnswer(t, half.c, "/x", "v0001")
	half.put(half.two, "x2.wasm", "v0002")
	awaitAnswer(t, half.c, "/x", "v0002")
	awaitAnswer(t, later.c, "/x", "v0002")
	awaitRecord(t, paths, oneWaits)

	// Once it is gone everywhere the other one has the path, and keeps it.
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

// TestAgreeFromFile has servers that noted on disk what they did come to share it: nothing is lost.
func TestAgreeFromFile(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001"), a.source("/two", "v0002", "x2.wasm")
	c := a.catalog(one, two)
	awaitAnswer(t, c, "/x", "v0002")
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

// TestAgreeForeign has somebody else write into the record.
func TestAgreeForeign(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&many, `"%s//%d":["%[1]s//%d","/one//x1.wasm"],`, strings.Repeat("a", 20), i, i+1)
	}
	const rest = `,"nobody//a":["nobody//b"]`
	for name, test := range map[string]struct {
		record string
		want   string // of the record once x1 waits for x2; "": as it was
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

// TestAgreeAlways has files come, change and go at three servers, in another order at each. Whatever that was, all serve the same in the end.
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
			has := map[int][]string{} // the tools of the files that there are
			for round := range 12 {
				type change struct {
					file   int
					module []byte // nil: it goes
				}
				var changes []change
				for _, i := range random.Perm(8)[:1+random.IntN(5)] {
					// A new version has the same tools: an older one that stays is served only where it was before.
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
						time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond) // so that some see it as one change, and some as several
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
