package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/reach"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/capability/files"
	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// TestReachIsWhatIsReached lets guests try everything under random grants, scopes and switches. The operation reach must return exactly what a caller
// and a tool can reach in the running server. TOOLSRV_REACH is the number of configurations to try, and TOOLSRV_REACH_SEED repeats those of an
// earlier run.
// Proves: Nothing without a grant
func TestReachIsWhatIsReached(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("asks one after another, so the race detector would only slow it down")
	}
	n := 200
	if text := os.Getenv("TOOLSRV_REACH"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const each = 250 // configurations for one set of tools
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("TOOLSRV_REACH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("TOOLSRV_REACH_SEED=%d", seed)
	var counts explored
	for done := 0; done < n && !t.Failed(); done += each {
		t.Run(fmt.Sprint("from ", done), func(t *testing.T) {
			l := newLand(t, rand.New(rand.NewPCG(seed, uint64(done))))
			for i := range min(each, n-done) {
				if l.try(&counts); t.Failed() {
					t.Fatalf("in configuration %d of this set of tools", done+i)
				}
			}
		})
	}
	t.Logf("%+v", counts)
	if counts.Ends == 0 || counts.Through == 0 || counts.Nothing == 0 {
		t.Error("the configurations are too much alike")
	}
}

// explored counts how much was reached.
type explored struct {
	Configurations, Attempts int
	Ends, Through            int // how many things were reached, and how many of these through other tools
	Nothing, Deepest         int // how many tools reached nothing, and how many tools were on the longest path
}

// A land is a server whose tools try to reach things.
type land struct {
	*running
	random *rand.Rand
	base   *config.Config
	tools  []string // their paths without the first slash
	origin string
	over   *client.Client
	asking *http.Client
	issued []caller

	mu   sync.Mutex        // guards what follows
	keys map[string]string // the values of the header X-Key that arrived, by request id
	last int
}

// A caller is a caller of tools.
type caller struct{ name, token string }

// The places that tools try to reach.
var (
	placesOfHTTP  = []string{"/", "/a/", "/a/b/", "/c/"}
	visited       = []string{"/x", "/a/x", "/a/b/x", "/c/x", "/d/x"}
	secretNames   = []string{"first", "second", "third"}
	directoryOf   = []string{"maps", "geo"}
	matchesOfLand = []string{"**", "a/*", "a/**", "a", "b", "b/*", "*/t1", "**/t2", "top", "c", "a/b/t0", "b/t1", "a/t0", "a/t1"}
)

// some returns between least and most random elements of a list.
func some[T any](r *rand.Rand, from []T, least, most int) (all []T) {
	for _, i := range r.Perm(len(from))[:min(len(from), least+r.IntN(most-least+1))] {
		all = append(all, from[i])
	}
	return all
}

func newLand(t *testing.T, r *rand.Rand) *land {
	t.Helper()
	l := &land{random: r, keys: map[string]string{}, asking: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(l.asking.CloseIdleConnections)
	visits := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.keys[q.URL.Query().Get("id")] = q.Header.Get("X-Key")
	}))
	t.Cleanup(visits.Close)
	l.origin = visits.URL
	l.base = config.Default()
	l.base.Server.Addresses = []string{"127.0.0.1:0"}
	l.base.Tools.Directory, l.base.Tools.CacheDir = t.TempDir(), t.TempDir()
	l.base.State.Directory = shortDir(t)
	l.base.Secrets.Files = map[string]string{}
	for _, name := range secretNames {
		l.base.Secrets.Files[name] = testkit.Put(t, t.TempDir(), name, "the-secret-of-"+name)
	}
	l.makeTools(t)

	l.running = &running{tb: t, log: &testkit.Log{}, done: make(chan error, 1)}
	lines := slog.NewJSONHandler(&beginning{to: l.log, until: `"msg":"ready"`}, nil)
	var err error
	if l.of, l.Server, err = open(t, l.base, core.Options{Logger: slog.New(lines)}, server.Options{}); err != nil {
		t.Fatal(err)
	}
	run(t, l.running).log.Wait(t, `"msg":"ready"`)
	if l.over, err = client.OverSocket(socket.Of(l.base)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.over.Close)
	for _, namespace := range []string{"", "a", "a/b", "b", "c"} {
		if _, err := l.of.State.Store().Space("kv/"+namespace).Set(t.Context(), "who", fmt.Appendf(nil, "%q", namespace), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if r.IntN(2) == 0 { // if there are tokens, callers always need credentials
		for _, name := range []string{"issued", "scoped"} {
			l.issued = append(l.issued, caller{name, issue(l.running, name, some(r, matchesOfLand, 0, 3)...)})
		}
	}
	return l
}

// beginning is a writer that passes on what is written until a text has appeared.
type beginning struct {
	to    io.Writer
	until string
	mu    sync.Mutex // guards ended
	ended bool
}

func (b *beginning) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return len(text), nil
	}
	b.ended = bytes.Contains(text, []byte(b.until))
	return b.to.Write(text)
}

// makeTools makes random tools in four namespaces and without one, and a chain of tools in c, each of which calls the next.
func (l *land) makeTools(t *testing.T) {
	t.Helper()
	names := map[string]int{"": 2, "a": 5, "a/b": 3, "b": 4}
	pathOf := func(namespace string, i int) string {
		if namespace == "" {
			return fmt.Sprintf("top%d", i)
		}
		return fmt.Sprintf("%s/t%d", namespace, i)
	}
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		for i := range names[namespace] {
			l.tools = append(l.tools, pathOf(namespace, i))
		}
	}
	free := slices.Clone(l.tools)
	names["c"] = tools.MaxDepth + 3
	for i := range names["c"] {
		l.tools = append(l.tools, pathOf("c", i))
	}
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		var all []map[string]any
		for i := range names[namespace] {
			needs := map[string]any{}
			if namespace == "c" {
				needs["kv"] = true
				if i+1 < names["c"] {
					needs["tools"] = []string{pathOf("c", i+1)}
				}
			} else {
				l.need(needs, free)
			}
			path := pathOf(namespace, i)
			all = append(all, map[string]any{"name": path[strings.LastIndexByte(path, '/')+1:], "description": "Goes there.", "parameters": map[string]any{"type": "object"}, "needs": needs})
		}
		manifest, err := json.Marshal(map[string]any{"abi": 1, "namespace": namespace, "tools": all})
		if err != nil {
			t.Fatal(err)
		}
		testkit.Put(t, l.base.Tools.Directory, "of"+strings.ReplaceAll(namespace, "/", "-")+".wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/roam"), manifest))
	}
}

// need sets the needs of a tool.
func (l *land) need(needs map[string]any, free []string) {
	r := l.random
	if r.IntN(3) > 0 {
		needs["tools"] = some(r, free, 1, 4)
	}
	if r.IntN(2) == 0 {
		needs["http"] = l.urls(some(r, placesOfHTTP, 1, 2))
	}
	if r.IntN(3) == 0 {
		needs["kv"] = true
	}
	if r.IntN(3) == 0 {
		needs["secrets"] = some(r, secretNames, 1, 2)
	}
	if r.IntN(3) == 0 {
		needs["files"] = some(r, directoryOf, 1, 2)
	}
}

func (l *land) urls(paths []string) (all []string) {
	for _, path := range paths {
		all = append(all, l.origin+path)
	}
	return all
}

// grants returns random grants, some of which shadow others.
func (l *land) grants() (all []config.Grant) {
	r := l.random
	var private []netip.Prefix
	if r.IntN(8) > 0 { // without this, no request would arrive
		private = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	for i := range 2 + r.IntN(5) {
		g := config.Grant{Match: matchesOfLand[r.IntN(len(matchesOfLand))], Rules: capability.Rules{}}
		often := 3
		if i == 0 && r.IntN(2) == 0 {
			g.Match, often = "**", 1
		}
		if r.IntN(often) == 0 {
			g.Rules["tools"] = &tools.Rule{Tools: some(r, append([]string{"**", "**"}, matchesOfLand...), 1, 4)}
		}
		if r.IntN(often) == 0 {
			rule := &httpcap.Rule{Granted: l.urls(some(r, placesOfHTTP, 1, 3)), Private: private}
			for _, on := range some(r, rule.Granted, 0, 2) {
				if rule.Headers == nil {
					rule.Headers = map[string]map[string]string{}
				}
				rule.Headers[on] = map[string]string{"X-Key": "${secret:" + secretNames[r.IntN(len(secretNames))] + "}"}
			}
			g.Rules["http"] = rule
		}
		if r.IntN(often) == 0 {
			g.Rules["kv"] = &kv.Rule{Bytes: 1 << 20}
		}
		if r.IntN(often) == 0 {
			g.Rules["secrets"] = &secrets.Rule{Visible: some(r, secretNames, 1, 3)}
		}
		if r.IntN(often) == 0 {
			g.Rules["files"] = &files.Rule{Directories: map[string]string{}}
			for _, name := range some(r, directoryOf, 1, 2) {
				g.Rules["files"].(*files.Rule).Directories[name] = l.directory(name, r.IntN(2))
			}
		}
		all = append(all, g)
	}
	return all
}

// directory returns one of the two directories for a name.
func (l *land) directory(name string, which int) string {
	l.tb.Helper()
	dir := filepath.Join(l.base.State.Directory, fmt.Sprint(name, which))
	if _, err := os.Stat(dir); err != nil {
		testkit.Put(l.tb, dir, "who", fmt.Sprintf("%q", name+" "+dir))
	}
	return dir
}

// change returns a random configuration and its callers.
func (l *land) change() (c *config.Config, callers []caller) {
	r := l.random
	next := *l.base
	next.Grants = l.grants()
	callers = slices.Clone(l.issued)
	if r.IntN(4) > 0 {
		for i := range 1 + r.IntN(3) {
			who := caller{fmt.Sprint("declared", i), fmt.Sprint("the token of declared", i)}
			who.token = strings.ReplaceAll(who.token, " ", "-")
			next.Auth.Declared = append(next.Auth.Declared, config.Token{Name: who.name, SHA256: sha256.Sum256([]byte(who.token)), Scopes: some(r, append([]string{"*", "**"}, matchesOfLand...), 0, 4)})
			callers = append(callers, who)
		}
	}
	if r.IntN(4) == 0 {
		next.Auth.Tokens = []string{"plain"}
		callers = append(callers, caller{"", "plain"})
	}
	if len(callers) == 0 {
		callers = []caller{{"everybody", ""}}
	}
	if r.IntN(3) > 0 {
		next.Tools.Disabled = append(next.Tools.Disabled, "c")
	}
	next.Tools.Disabled = append(next.Tools.Disabled, some(r, matchesOfLand[1:], 0, 2)...)
	return &next, callers
}

// try puts one configuration in force, and compares the answers of reach with what is really reached, for some callers and tools.
func (l *land) try(counts *explored) {
	t, r := l.tb, l.random
	t.Helper()
	counts.Configurations++
	c, callers := l.change()
	if err := l.Reload(c); err != nil {
		t.Fatal(err)
	}
	if len(l.issued) > 0 && r.IntN(10) == 0 {
		if _, err := l.of.Tokens.SetScopes(t.Context(), "scoped", some(r, matchesOfLand, 0, 3), state.Any); err != nil {
			t.Fatal(err)
		}
	}
	if r.IntN(10) == 0 {
		arguments := admin.Switched{Names: some(r, []string{"a", "b", "a/b", "b/t1", "a/t0", "top0"}, 1, 2)}
		_, _ = l.over.Do(t.Context(), []string{"disable", "enable", "reset"}[r.IntN(3)], arguments, "") // also refused if its namespace is switched off
	}
	var told admin.Reach
	l.ask("reach", admin.ReachArguments{}, &told)
	for range 2 {
		who, first := callers[r.IntN(len(callers))], l.tools[r.IntN(len(l.tools))]
		if len(told.Ways) > 0 && r.IntN(2) == 0 { // a tool from which something is reached
			first = told.Ways[r.IntN(len(told.Ways))].Tool
		}
		for _, p := range l.Principals() {
			if who.name == "" && strings.HasPrefix(p.String(), "token-") {
				who.name = p.String()
			}
		}
		ways := slices.DeleteFunc(slices.Clone(told.Ways), func(w reach.Way) bool { return w.Principal != who.name || w.Tool != first })
		want := expected(ways, l.origin)
		got := l.explore(counts, who, first)
		if !agree(got, want) {
			t.Errorf("%s by %s reaches\n%s\nand is said to reach\n%s\nby %+v\nunder %s", first, who.name, strings.Join(got, "\n"), strings.Join(want, "\n"), ways, asText(c))
		}
		var why admin.Explanation
		l.ask("explain", admin.ExplainArguments{Principal: who.name, Tool: first}, &why)
		if may, answer := l.call(counts, who, nil, first, "o"); may != why.Allowed {
			t.Errorf("a call of %s by %s is answered with %s, and the explanation is %+v", first, who.name, answer, why)
		}
	}
}

// agree reports whether the things that were reached are those that the operation reach returns. reach does not say which of several rules applies to
// a URL. So a secret must be in some of the requests to the URLs that reach names for it, and in no other requests.
func agree(got, want []string) bool {
	secretsOf := func(all []string) (with, others []string) {
		for _, s := range all {
			if rest, is := strings.CutPrefix(s, "with "); is {
				name, _, _ := strings.Cut(rest, " ")
				with = append(with, name)
			} else {
				others = append(others, s)
			}
		}
		return slices.Compact(with), others // they are sorted
	}
	for _, s := range got {
		if !slices.Contains(want, s) {
			return false
		}
	}
	gotWith, gotOthers := secretsOf(got)
	wantWith, wantOthers := secretsOf(want)
	return slices.Equal(gotWith, wantWith) && slices.Equal(gotOthers, wantOthers)
}

// asText returns the relevant parts of a configuration.
func asText(c *config.Config) string {
	text := new(strings.Builder)
	for _, g := range c.Grants {
		fmt.Fprintf(text, "\n[[grant]] match = %q", g.Match)
		for _, name := range slices.Sorted(maps.Keys(g.Rules)) {
			fmt.Fprintf(text, " %s = %+v", name, g.Rules[name])
		}
	}
	for _, d := range c.Auth.Declared {
		fmt.Fprintf(text, "\n%s: %q", d.Name, d.Scopes)
	}
	return fmt.Sprintf("%s\ndisabled: %q", text, c.Tools.Disabled)
}

func (l *land) ask(name string, arguments, to any) {
	l.tb.Helper()
	answer, err := l.over.Do(l.tb.Context(), name, arguments, "")
	if err == nil {
		err = answer.Into(to)
	}
	if err != nil {
		l.tb.Fatal(err)
	}
}

// expected returns the answer of reach in the form that explore uses.
func expected(ways []reach.Way, origin string) (all []string) {
	arrives := slices.ContainsFunc(ways, func(w reach.Way) bool { return w.Capability == "http" && w.Detail != "" })
	for _, w := range ways {
		entry, isHTTP := w.Entry, w.Capability == "http"
		into, isHeader := strings.CutPrefix(w.Detail, "put into requests to ")
		switch {
		case (isHTTP || isHeader) && !arrives: // the name leads to this machine, whose addresses are not granted
		case isHTTP, isHeader:
			what := "http"
			if isHeader {
				entry, what = into, "with "+w.Entry
			}
			for _, path := range visited {
				if strings.HasPrefix(origin+path, entry) {
					all = append(all, what+" "+path)
				}
			}
		default:
			all = append(all, strings.TrimSpace(w.Capability+" "+w.Entry+" "+strings.TrimPrefix(w.Detail, "shown to the tool")))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// call lets a caller call the tools in through, each from the one before it, and makes the last one do
// something.
func (l *land) call(counts *explored, who caller, through []string, first, do string) (ok bool, answer string) {
	l.tb.Helper()
	counts.Attempts++
	text := new(strings.Builder)
	text.WriteString(`{"go":"`)
	for _, path := range through {
		fmt.Fprintf(text, "c%c%s", '@'+len(path), path)
	}
	text.WriteString(do + `"}`)
	q, err := http.NewRequestWithContext(l.tb.Context(), http.MethodPost, l.url+"/"+first, strings.NewReader(text.String()))
	if err != nil {
		l.tb.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if who.token != "" {
		q.Header.Set("Authorization", "Bearer "+who.token)
	}
	a, err := l.asking.Do(q)
	if err != nil {
		l.tb.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		l.tb.Fatal(err)
	}
	if a.StatusCode >= http.StatusInternalServerError && !bytes.Contains(body, []byte(`"code":"tool_`)) {
		l.tb.Fatalf("%s of %s: %d %s", text, first, a.StatusCode, body)
	}
	return a.StatusCode == http.StatusOK, string(body)
}

// explore finds out what a caller reaches with a tool, by trying everything from each tool that can be reached, the nearest first.
func (l *land) explore(counts *explored, who caller, first string) (all []string) {
	l.tb.Helper()
	if ok, _ := l.call(counts, who, nil, first, "o"); !ok {
		counts.Nothing++
		return nil
	}
	seen := map[string]bool{first: true}
	level := [][]string{nil}
	for depth := 0; len(level) > 0; depth++ {
		counts.Deepest = max(counts.Deepest, depth)
		var next [][]string
		for _, through := range level {
			at := l.look(counts, who, first, through)
			if all = append(all, at...); depth > 0 {
				counts.Through += len(at)
			}
			for _, path := range l.tools {
				on := append(slices.Clone(through), path)
				if seen[path] {
					continue
				}
				if ok, _ := l.call(counts, who, on, first, "o"); ok {
					seen[path] = true
					next = append(next, on)
				}
			}
		}
		level = next
	}
	counts.Ends += len(all)
	slices.Sort(all)
	return slices.Compact(all)
}

// look tries to reach everything with one tool.
func (l *land) look(counts *explored, who caller, first string, through []string) (all []string) {
	l.tb.Helper()
	for _, path := range visited {
		l.last++
		id := strconv.Itoa(l.last)
		l.call(counts, who, through, first, "h"+l.origin+path+"?id="+id)
		l.mu.Lock()
		key, arrived := l.keys[id]
		delete(l.keys, id)
		l.mu.Unlock()
		if arrived {
			all = append(all, "http "+path)
		}
		if name, has := strings.CutPrefix(key, "the-secret-of-"); has {
			all = append(all, "with "+name+" "+path)
		}
	}
	value := func(do string) (s string, ok bool) {
		ok, answer := l.call(counts, who, through, first, do)
		return s, ok && json.Unmarshal([]byte(answer), &s) == nil
	}
	if namespace, ok := value("k"); ok {
		all = append(all, strings.TrimSpace("kv "+namespace))
	}
	for _, name := range secretNames {
		if ok, _ := l.call(counts, who, through, first, "s"+name); ok {
			all = append(all, "secrets "+name)
		}
	}
	for _, name := range directoryOf {
		if where, ok := value("f" + name + "/who"); ok {
			all = append(all, "files "+where)
		}
	}
	return all
}
