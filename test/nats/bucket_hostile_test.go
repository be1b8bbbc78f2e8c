package nats_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/catalog/bucket"
	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
)

// objectsOf returns the object bucket of the replicas, for a program that may write to it.
func objectsOf(t testing.TB, c *cluster) (jetstream.ObjectStore, jetstream.JetStream) {
	t.Helper()
	js, _ := raw(t, c)
	store, err := js.ObjectStore(t.Context(), "toolsrv_tools")
	if err != nil {
		t.Fatal(err)
	}
	return store, js
}

// recordOf returns the record of a file in toolsrv's form.
func recordOf(digest string, size int64) []byte {
	return fmt.Appendf(nil, "\x01"+`{"digest":%q,"kept":[{"digest":%q,"size":%d,"since":"2026-11-27T12:00:00Z"}]}`, digest, digest, size)
}

// TestBucketBadContent lets somebody write other bytes under a digest, remove a content, and lie about its size: the file is refused with the reason,
// its served version stays, other files are not affected, and putting the file again repairs it.
func TestBucketBadContent(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one := startReplica(t, c.url(), nil)
	first, good := tool(t, "v0001", "math", 10<<10, "add"), tool(t, "v0002", "math", 10<<10, "add")
	for name, module := range map[string][]byte{"math/add.wasm": first, "other.wasm": tool(t, "other", "", 0, "other")} {
		if a := one.put(name, module); a.code != 200 {
			t.Fatal(a)
		}
	}
	store, js := objectsOf(t, c)
	states := open(t, c, nil).Space(bucket.Space("tools"))
	set := func(name string, record []byte) {
		t.Helper()
		if _, err := states.Set(t.Context(), name, record, state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	digest := digestOf(good)
	info := func(change func(m map[string]any)) func() {
		return func() {
			if _, err := store.PutBytes(t.Context(), digest, good); err != nil {
				t.Fatal(err)
			}
			subject := "$O.toolsrv_tools.M." + base64.URLEncoding.EncodeToString([]byte(digest))
			stream, err := js.Stream(t.Context(), "OBJ_toolsrv_tools")
			if err != nil {
				t.Fatal(err)
			}
			m, err := stream.GetLastMsgForSubject(t.Context(), subject)
			if err != nil {
				t.Fatal(err)
			}
			var of map[string]any
			if err := json.Unmarshal(m.Data, &of); err != nil {
				t.Fatal(err)
			}
			change(of)
			text, err := json.Marshal(of)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.PublishMsg(t.Context(), &client.Msg{Subject: subject, Header: client.Header{"Nats-Rollup": {"sub"}}, Data: text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, bad := range []struct {
		name  string
		spoil func()
	}{
		{"missing", func() { _ = store.Delete(t.Context(), digest) }},
		{"other bytes", func() {
			_, _ = store.PutBytes(t.Context(), digest, bytes.Replace(good, []byte("v0002"), []byte("evil!"), 1))
		}},
		{"shorter", func() { _, _ = store.PutBytes(t.Context(), digest, good[:100]) }},
		{"longer", func() { _, _ = store.PutBytes(t.Context(), digest, append(bytes.Clone(good), good...)) }},
		{"a size that is too small", info(func(m map[string]any) { m["size"] = 10 })},
		{"a size of 10 GB", info(func(m map[string]any) { m["size"] = 10 << 30 })},
		{"a negative size", info(func(m map[string]any) { m["size"] = -1 })},
		{"the chunks of all objects", info(func(m map[string]any) { m["nuid"] = ">" })},
		{"a link to itself", info(func(m map[string]any) {
			m["options"] = map[string]any{"link": map[string]any{"bucket": "toolsrv_tools", "name": digest}}
		})},
	} {
		bad.spoil()
		fresh := startReplica(t, c.url(), nil) // the replica's cache does not have the file
		served(t, []*replica{fresh}, "/math/add", one.call("/math/add"))
		set("math/add.wasm", recordOf(digest, int64(len(good))))
		why := ""
		eventually(t, bad.name+" is refused", func() bool {
			a := fresh.ask(http.MethodGet, "/admin/v1/refused", nil)
			why = a.body
			return strings.Contains(a.body, "add.wasm")
		})
		if !strings.Contains(why, "its content in the bucket is missing, or doesn't match its digest: put the file again") {
			t.Errorf("%s: got %s", bad.name, why)
		}
		if got := fresh.call("/math/add"); got != "v0001" && got != "v0002" {
			t.Errorf("%s: the served version became %s", bad.name, got)
		}
		if got := fresh.call("/other"); got != "other" {
			t.Errorf("%s: another tool answers %s", bad.name, got)
		}
		if a := fresh.put("math/add.wasm", good); a.code != 200 {
			t.Errorf("%s: put again: %v", bad.name, a)
		}
		served(t, []*replica{fresh, one}, "/math/add", "v0002")
		if a := one.put("math/add.wasm", first); a.code != 200 {
			t.Error(a)
		}
		fresh.stop()
	}
}

// TestBucketBadRecords writes records that no server would write: their files are not served, and all others are.
func TestBucketBadRecords(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one := startReplica(t, c.url(), nil)
	module := tool(t, "v0001", "math", 0, "add")
	if a := one.put("math/add.wasm", module); a.code != 200 {
		t.Fatal(a)
	}
	states := open(t, c, nil).Space(bucket.Space("tools"))
	digest := digestOf(module)
	for name, record := range map[string]string{
		"newer.wasm":    "\x02{}",
		"empty.wasm":    "",
		"nothing.wasm":  "\x01",
		"no-json.wasm":  "\x01{",
		"large.wasm":    "\x01" + strings.Repeat(" ", 33<<10) + "{}",
		"path.wasm":     "\x01" + `{"digest":"../../etc/passwd","kept":[{"digest":"../../etc/passwd","size":1}]}`,
		"minus.wasm":    string(recordOf(digest, -1)),
		"gigabyte.wasm": string(recordOf(digest, 10<<30)),
		"unkept.wasm":   "\x01" + `{"digest":"` + digest + `"}`,
		"back.wasm":     "\x01" + `{"back":{"digest":"` + digest + `"}}`,
	} {
		if _, err := states.Set(t.Context(), name, []byte(record), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	good := string(recordOf(digest, int64(len(module))))
	for _, name := range []string{"../up.wasm", "/abs.wasm", "a//b.wasm", ".hidden.wasm", "a/../b.wasm", "con.wasm", "sub/\x1b[2J.wasm", "a\\b.wasm", strings.Repeat("x", 1000) + ".wasm", "script.py", "none"} {
		if _, err := states.Set(t.Context(), name, []byte(good), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var refused string
	eventually(t, "all records were read", func() bool {
		refused = one.ask(http.MethodGet, "/admin/v1/refused", nil).body
		return strings.Count(refused, `.wasm`) >= 10
	})
	for _, name := range []string{"newer", "empty", "nothing", "no-json", "large", "path", "minus", "gigabyte", "unkept", "back"} {
		if !strings.Contains(refused, "/"+name+".wasm") {
			t.Errorf("%s is not among the refused files: %s", name, refused)
		}
	}
	for _, r := range []*replica{one, startReplica(t, c.url(), nil)} {
		served(t, []*replica{r}, "/math/add", "v0001")
		if tools := r.ask(http.MethodGet, "/tools", nil); strings.Count(tools.body, `"path"`) > 1 {
			t.Errorf("got %v", tools)
		}
	}
	// A record of a newer version is not changed; others can be repaired.
	if a := one.put("newer.wasm", tool(t, "newer", "", 0, "newer")); a.code == 200 || !strings.Contains(a.body, "newer version of toolsrv") {
		t.Errorf("a put over a newer record: %v", a)
	}
	if a := one.put("minus.wasm", tool(t, "minus", "", 0, "minus")); a.code != 200 {
		t.Errorf("a put over a broken record: %v", a)
	}
	for _, name := range []string{"../up.wasm", strings.Repeat("x", 10<<10) + ".wasm", "script.py", "MATH/add.wasm", ".wasm", "a\x00.wasm"} {
		if a := one.put(name, tool(t, "other", "", 0, "other")); a.code != 400 && a.code != 422 {
			t.Errorf("%.40q is put: %.300v", name, a)
		}
	}
}

// agree waits until all replicas serve the same tools.
func agree(t testing.TB, all []*replica) {
	t.Helper()
	eventually(t, "all agree", func() bool {
		first := all[0].ask(http.MethodGet, "/tools", nil).etag + all[0].call("/math/add")
		for _, r := range all[1:] {
			if r.ask(http.MethodGet, "/tools", nil).etag+r.call("/math/add") != first {
				return false
			}
		}
		return true
	})
}

// TestBucketTogether lets three servers put and roll back the same file at the same time: one of them wins, and the others are told.
func TestBucketTogether(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	all := []*replica{startReplica(t, c.url(), nil), startReplica(t, c.url(), nil), startReplica(t, c.url(), nil)}
	for i, text := range []string{"v0001", "v0002"} {
		if a := all[i].put("math/add.wasm", tool(t, text, "math", 0, "add")); a.code != 200 {
			t.Fatal(a)
		}
	}
	lost, won := 0, 0
	for i := range 12 {
		agree(t, all)
		changes := []func(r *replica) answer{
			func(r *replica) answer {
				return r.put("math/add.wasm", tool(t, fmt.Sprintf("v%03d"+r.url[len(r.url)-1:], i+10), "math", 0, "add"))
			},
			func(r *replica) answer { return r.do("rollback", `{"path":"math/add.wasm"}`) },
		}
		answers := make([]answer, len(all))
		var each sync.WaitGroup
		for n, r := range all {
			each.Go(func() { answers[n] = changes[[][3]int{{0, 0, 0}, {0, 1, 0}, {1, 0, 1}}[i%3][n]](r) })
		}
		each.Wait()
		for _, a := range answers {
			switch {
			case a.code == 200:
				won++
			case strings.Contains(a.body, `"changed"`):
				lost++
			default:
				t.Errorf("round %d: got %v", i, a)
			}
		}
	}
	agree(t, all)
	t.Logf("%d changes were made, and %d were refused because another was first", won, lost)
	if lost == 0 {
		t.Error("no change was ever refused")
	}
	if a := all[0].put("math/add.wasm", tool(t, "v9999", "math", 0, "add"), "If-Match", `"`+digestOf([]byte("x"))+`"`); a.code != 412 && a.code != 409 {
		t.Errorf("a put with the wrong expected version: %v", a)
	}
}

// TestBucketOnePath lets servers put files with the same tool at the same time: all serve the file that was first, also after a restart, and the
// other file once the first is removed.
func TestBucketOnePath(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	all := []*replica{startReplica(t, c.url(), nil), startReplica(t, c.url(), nil)}
	for round := range 4 {
		path, names := fmt.Sprintf("/math/add%d", round), make([]string, 2)
		answers := make([]answer, 2)
		var both sync.WaitGroup
		for n, r := range all {
			names[n] = fmt.Sprintf("%c%d.wasm", 'a'+n, round)
			module := tool(t, fmt.Sprintf("v%d-%02d", n, round), "math", 0, path[6:])
			both.Go(func() { answers[n] = r.put(names[n], module) })
		}
		both.Wait()
		first := 0
		if answers[1].code == 200 {
			first = 1
		}
		if answers[first].code != 200 || answers[1-first].code == 200 {
			t.Fatalf("got %v", answers)
		}
		t.Logf("round %d: the second put got %v", round, answers[1-first])
		all := append(all, startReplica(t, c.url(), nil))
		served(t, all, path, fmt.Sprintf("v%d-%02d", first, round))
		// A new version keeps the path.
		if a := all[1].put(names[first], tool(t, fmt.Sprintf("n%d-%02d", first, round), "math", 0, path[6:])); a.code != 200 {
			t.Error(a)
		}
		served(t, all, path, fmt.Sprintf("n%d-%02d", first, round))
		if a := all[0].do("remove", `{"name":"`+names[first]+`"}`); a.code != 200 {
			t.Error(a)
		}
		left := "404"
		if answers[1-first].code == 503 { // the second file is already stored
			left = fmt.Sprintf("v%d-%02d", 1-first, round)
		}
		served(t, all, path, left)
	}
}

// TestBucketAway cuts a server off: it serves what it has, accepts no puts, and later catches up. After a restart, it fetches nothing twice.
func TestBucketAway(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	gate := newGate(t, c)
	cache := t.TempDir()
	keeps := func(o *config.Config) { o.Tools.CacheDir = cache }
	one, cut := startReplica(t, c.url(), nil), startReplica(t, gate.url(), keeps)
	if a := one.put("math/add.wasm", tool(t, "v0001", "math", 100<<10, "add")); a.code != 200 {
		t.Fatal(a)
	}
	served(t, []*replica{cut}, "/math/add", "v0001")
	gate.shut()
	if a := cut.put("math/add.wasm", tool(t, "v0002", "math", 100<<10, "add")); a.code != 503 {
		t.Errorf("a put while NATS is away: %v", a)
	}
	for _, operation := range []string{"remove", "rollback"} {
		if a := cut.do(operation, `{"name":"math/add.wasm","path":"math/add"}`); a.code == 200 {
			t.Errorf("%s while NATS is away: %v", operation, a)
		}
	}
	third := tool(t, "v0003", "math", 100<<10, "add")
	if a := one.put("math/add.wasm", third); a.code != 200 {
		t.Fatal(a)
	}
	if got := cut.call("/math/add"); got != "v0001" {
		t.Errorf("got %s", got)
	}
	gate.open()
	served(t, []*replica{cut}, "/math/add", "v0003")
	cut.stop()
	store, _ := objectsOf(t, c)
	if err := store.Delete(t.Context(), digestOf(third)); err != nil {
		t.Fatal(err)
	}
	cut = startReplica(t, gate.url(), keeps)
	served(t, []*replica{cut}, "/math/add", "v0003")
	if a := cut.put("math/add.wasm", tool(t, "v0004", "math", 100<<10, "add")); a.code != 200 {
		t.Errorf("a put after the restart: %v", a)
	}
	served(t, []*replica{one}, "/math/add", "v0004")
}

// TestBucketCutInPut cuts the connection at every point of a put: afterwards the file is the old or the new one, and the same put again repairs
// everything.
func TestBucketCutInPut(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	gate := newGate(t, c)
	one, cut := startReplica(t, c.url(), nil), startReplica(t, gate.url(), nil)
	for i := range 8 {
		text := fmt.Sprintf("v%04d", i+1)
		module := tool(t, text, "math", 2<<20, "add")
		timer := time.AfterFunc(time.Duration(i)*8*time.Millisecond, gate.shut)
		a := cut.put("math/add.wasm", module)
		timer.Stop()
		gate.open()
		eventually(t, "it is back", func() bool { return cut.put("math/add.wasm", module).code == 200 })
		served(t, []*replica{one, cut}, "/math/add", text)
		if a.code != 200 && a.code != 503 {
			t.Errorf("%d: the interrupted put got %v", i, a)
		}
	}
}

// TestObjectsUnanswered has a node that accepts requests and answers none: then the state counts as unavailable, and not the request as wrong.
func TestObjectsUnanswered(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	gate := newGate(t, c)
	objects := open(t, c, func(o *nats.Options) { o.URL = gate.url() }).Objects("tools")
	if err := objects.Put(t.Context(), "a", strings.NewReader("a")); err != nil {
		t.Fatal(err)
	}
	content, err := objects.Get(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	content.Close()
	gate.held.Store(regexp.MustCompile("^_INBOX"))
	if _, _, err := objects.Room(t.Context()); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("the size of the bucket: %v", err)
	}
	if _, err := objects.Get(t.Context(), "a", 1); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("an object: %v", err)
	}
}

// TestBucketCollect checks that exactly two things are removed: contents that no file and no version names, and the parts of
// interrupted puts.
func TestBucketCollect(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	s := open(t, c, nil)
	objects := s.Objects("tools")
	b := bucket.Open(bucket.Options{Name: "tools", Cache: registry.OpenCache(t.TempDir(), 0), Versions: func() int { return 2 }})
	b.Follow(s.Space(bucket.Space("tools")), objects)
	defer b.Close()
	if _, err := b.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	put := func(name, content string) error {
		was, err := b.Look(name)
		if err != nil {
			return err
		}
		f, err := b.Begin(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Write([]byte(content)); err != nil {
			return err
		}
		return b.Commit(t.Context(), name, f, was, nil)
	}
	for _, content := range []string{"1", "2", "3", "4", strings.Repeat("large", 100_000)} {
		if err := put("a.wasm", content); err != nil {
			t.Fatal(err)
		}
	}
	store, js := objectsOf(t, c)
	for _, orphan := range []string{"orphan", strings.Repeat("z", 300<<10)} { // a server was killed before it wrote the record
		if err := objects.Put(t.Context(), digestOf([]byte(orphan)), strings.NewReader(orphan)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // another server was killed before it had stored the whole content
		if _, err := js.Publish(t.Context(), "$O.toolsrv_tools.C.AAAAAAAAAAAAAAAAAAAAAA", []byte("half")); err != nil {
			t.Fatal(err)
		}
	}
	names := func() map[string]bool {
		list, err := store.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, o := range list {
			all[o.Name] = true
		}
		return all
	}
	if removed, err := b.Collect(t.Context(), time.Hour); removed != 0 || err != nil {
		t.Errorf("%d recent contents were removed, %v", removed, err)
	}
	// The list may come from a node that is behind.
	eventually(t, "all are there", func() bool { return len(names()) == 7 })
	if removed, err := b.Collect(t.Context(), 0); removed != 5 || err != nil {
		t.Errorf("removed %d, %v", removed, err)
	}
	eventually(t, "two are left", func() bool {
		left := names()
		return len(left) == 2 && left[digestOf([]byte("4"))] && left[digestOf([]byte(strings.Repeat("large", 100_000)))]
	})
	stream, err := js.Stream(t.Context(), "OBJ_toolsrv_tools")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil || len(info.State.Subjects) != 4 {
		t.Errorf("%v are left, %v, want two objects with their chunks", info.State.Subjects, err)
	}
	// If a record can't be read, it is unknown which contents the record needs.
	if _, err := s.Space(bucket.Space("tools")).Set(t.Context(), "new.wasm", []byte("\x02{}"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is removed any more", func() bool { _, err := b.Collect(t.Context(), 0); return err != nil })
	if len(names()) != 2 {
		t.Error("something was removed")
	}
}

// TestBucketFull fills the bucket: a put is refused with an error that says what to do, and there is room again once old contents are gone.
func TestBucketFull(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one := startReplica(t, c.url(), nil)
	if a := one.put("math/add.wasm", tool(t, "v0001", "math", 100<<10, "add")); a.code != 200 {
		t.Fatal(a)
	}
	_, js := objectsOf(t, c)
	stream, err := js.Stream(t.Context(), "OBJ_toolsrv_tools")
	if err != nil {
		t.Fatal(err)
	}
	o := stream.CachedInfo().Config
	o.MaxBytes = 500 << 10
	if _, err := js.UpdateStream(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	code := 200
	var last answer
	for i := 2; code == 200 && i < 20; i++ {
		last = one.put("math/add.wasm", tool(t, fmt.Sprintf("v%04d", i), "math", 100<<10, "add"))
		code = last.code
	}
	if code != 503 || !strings.Contains(last.body, "the bucket toolsrv_tools may hold 500 KiB, and has room for") {
		t.Errorf("got %v", last)
	}
	if got := one.call("/math/add"); got < "v0003" {
		t.Errorf("it answers %s", got)
	}
}
