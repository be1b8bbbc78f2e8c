package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// in returns options for a log in a state.
func in(store state.Store) audit.Options {
	return audit.Options{Space: func() state.Space { return store.Space(audit.Space) }}
}

// list returns all entries.
func list(t *testing.T, l *audit.Log) (all []audit.Record) {
	t.Helper()
	return paged(t, l, 0)
}

// paged returns all entries, read in pages.
func paged(t *testing.T, l *audit.Log, page int) (all []audit.Record) {
	t.Helper()
	for after, more := uint64(0), true; more; {
		records, left, err := l.List(t.Context(), after, page)
		if err != nil {
			t.Fatal(err)
		}
		if all, more = append(all, records...), left; len(records) > 0 {
			after = records[len(records)-1].Number
		}
	}
	return all
}

// add appends an entry about a target.
func add(t *testing.T, l *audit.Log, target string) {
	t.Helper()
	if err := l.Append(t.Context(), audit.Entry{Action: "test", Target: target}); err != nil {
		t.Fatal(err)
	}
}

// verify checks that the chain is unaltered.
func verify(t *testing.T, l *audit.Log) audit.Ends {
	t.Helper()
	ends, err := l.Verify(t.Context(), nil)
	if err != nil {
		t.Error(err)
	}
	return ends
}

// TestChain adds entries, and adds more after the state was opened again. Each entry has everything that it was given, and the hash of the entry
// before. Anybody can compute its own hash.
func TestChain(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	var log bytes.Buffer
	var want []string
	for round := range 3 {
		store, err := local.Open(dir, local.Options{Forms: map[string]byte{audit.Space: audit.Form}})
		if err != nil {
			t.Fatal(err)
		}
		o := in(store)
		o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		l := audit.New(o)
		for i := range 10 {
			e := audit.Entry{
				Action: "token.add", Who: "ann", Origin: "token", From: "192.0.2.7", Target: fmt.Sprint(round, "/", i), Before: json.RawMessage(`null`),
				After: json.RawMessage(`{"scopes": ["<math>/*"]}`), RequestID: "r1",
			}
			if err := l.Append(ctx, e); err != nil {
				t.Fatal(err)
			}
			want = append(want, e.Target)
		}
		records := paged(t, l, 7)
		if len(records) != len(want) {
			t.Fatalf("got %d entries, want %d", len(records), len(want))
		}
		before := ""
		for i, r := range records {
			if r.Number != uint64(i+1) || r.Target != want[i] || r.Who != "ann" || r.Origin != "token" || r.From != "192.0.2.7" || r.Action != "token.add" || r.RequestID != "r1" ||
				string(r.Before) != "null" || time.Since(r.Time) > time.Hour {
				t.Errorf("got entry %+v, want number %d about %s", r, i+1, want[i])
			}
			if r.Previous != before {
				t.Errorf("entry %d carries %q, want %q", i+1, r.Previous, before)
			}
			text, err := json.Marshal(r.Entry)
			if sum := sha256.Sum256(text); err != nil || r.Hash != fmt.Sprintf("%x", sum) {
				t.Errorf("entry %d has the hash %s, want %x of %s (%v)", i+1, r.Hash, sum, text, err)
			}
			before = r.Hash
		}
		ends := verify(t, l)
		if ends != (audit.Ends{First: 1, Last: uint64(len(want)), Hash: before}) {
			t.Errorf("got the ends %+v", ends)
		}
		if got, err := l.Ends(ctx); got != ends || err != nil {
			t.Errorf("got the ends %+v, %v, want %+v", got, err, ends)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) || !strings.Contains(lines[7], `"audit":true,"action":"token.add","who":"ann","origin":"token","from":"192.0.2.7","target":"0/7"`) || !strings.Contains(lines[7], `"number":8,"hash":"`) {
		t.Errorf("got %d lines such as %s", len(lines), lines[min(7, len(lines)-1)])
	}
}

// TestTampered alters the stored entries in every way that leaves the state readable, and checks that Verify says where.
func TestTampered(t *testing.T) {
	t.Parallel()
	key := func(n int) string { return fmt.Sprintf("entry/%016x", n) }
	get := func(t *testing.T, s state.Space, n int) []byte {
		e, ok, err := s.Get(t.Context(), key(n), state.MaxValue)
		if !ok || err != nil {
			t.Fatalf("entry %d: %t, %v", n, ok, err)
		}
		return e.Value
	}
	set := func(t *testing.T, s state.Space, key string, value []byte) {
		if _, err := s.Set(t.Context(), key, value, state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, s state.Space, key string) {
		if _, err := s.Delete(t.Context(), key, state.Any); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		tamper func(t *testing.T, s state.Space)
		want   string // a part of the error; empty if only a hash that is known elsewhere gives it away
	}{
		{"an entry", func(t *testing.T, s state.Space) {
			set(t, s, key(25), bytes.Replace(get(t, s, 25), []byte(`"target":"25"`), []byte(`"target":"52"`), 1))
		}, "entry 26 does not follow entry 25"},
		{"the number of an entry", func(t *testing.T, s state.Space) {
			set(t, s, key(25), bytes.Replace(get(t, s, 25), []byte(`"number":25`), []byte(`"number":24`), 1))
		}, "entry 25 says that it is entry 24"},
		{"two change places", func(t *testing.T, s state.Space) {
			a, b := get(t, s, 25), get(t, s, 26)
			set(t, s, key(25), b)
			set(t, s, key(26), a)
		}, "entry 25 says that it is entry 26"},
		{"an entry is removed", func(t *testing.T, s state.Space) { remove(t, s, key(25)) }, "there are 10 records, but there should be 11"},
		{"the first is removed", func(t *testing.T, s state.Space) { remove(t, s, key(21)) }, "there are 10 records, but there should be 11"},
		{"an entry is put in place of another", func(t *testing.T, s state.Space) {
			remove(t, s, key(25))
			set(t, s, "entry/x", nil)
		}, `"entry/x" is not the key of an entry`},
		{"one far away", func(t *testing.T, s state.Space) { set(t, s, "entry/ffffffffffffffff", get(t, s, 30)) }, "is not the key of an entry"},
		{"one later", func(t *testing.T, s state.Space) { set(t, s, key(1<<40), get(t, s, 30)) }, "there are 12 records"},
		{"something else", func(t *testing.T, s state.Space) { set(t, s, "other", nil) }, "there are 12 records"},
		{"no JSON", func(t *testing.T, s state.Space) { set(t, s, key(25), []byte("\x01{")) }, "entry 25: decode a record"},
		{"nothing in it", func(t *testing.T, s state.Space) { set(t, s, key(25), nil) }, "entry 25: decode a record: it has no form"},
		{"an entry of a newer form", func(t *testing.T, s state.Space) { set(t, s, key(25), []byte("\x02{}")) }, "entry 25: written by a newer version"},
		{"too much", func(t *testing.T, s state.Space) { set(t, s, key(25), make([]byte, 1<<20)) }, "entry 25: the value is too large"},
		{"what was dropped", func(t *testing.T, s state.Space) { remove(t, s, "dropped") }, "there are"},
		{"where it begins", func(t *testing.T, s state.Space) {
			set(t, s, "dropped", []byte("\x01"+`{"number":22,"hash":"`+strings.Repeat("0", 64)+`"}`))
			remove(t, s, key(21))
		}, "entry 23 does not follow entry 22"},
		{"the beginning is cut off", func(t *testing.T, s state.Space) {
			set(t, s, "dropped", fmt.Appendf([]byte{audit.Form}, `{"number":22,"hash":"%x"}`, sha256.Sum256(get(t, s, 22)[1:])))
			remove(t, s, key(21))
			remove(t, s, key(22))
		}, "entries are missing at the beginning or at the end: 8 are left, beginning with number 23, but none are dropped until there are 10"},
		{"the hash of the last dropped entry is removed", func(t *testing.T, s state.Space) { set(t, s, "dropped", []byte("\x01"+`{"number":20,"hash":""}`)) }, "the hash of the entries that were dropped is gone"},
		{"the last is removed", func(t *testing.T, s state.Space) { remove(t, s, key(30)) }, "entries are missing at the beginning or at the end: 9 are left, beginning with number 21"},
		{"the last is changed", func(t *testing.T, s state.Space) {
			set(t, s, key(30), bytes.Replace(get(t, s, 30), []byte(`"target":"30"`), []byte(`"target":"03"`), 1))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store := memory.New()
			o := in(store)
			o.Most = 10
			l := audit.New(o)
			for i := range 30 {
				add(t, l, fmt.Sprint(i+1))
			}
			ends := verify(t, l)
			known := map[uint64]string{ends.Last: ends.Hash}
			if _, err := l.Verify(t.Context(), known); err != nil {
				t.Error(err)
			}
			test.tamper(t, store.Space(audit.Space))
			// The log that has written the entries, and one that opens them.
			for _, l := range []*audit.Log{l, audit.New(o)} {
				_, err := l.Verify(t.Context(), known)
				var broken *audit.BrokenError
				if !errors.As(err, &broken) {
					t.Errorf("with the known hashes: got %v, want an error about an altered entry", err)
				}
			}
			_, err := audit.New(o).Verify(t.Context(), nil)
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "the audit was altered: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestShared lets two processes append to and verify one audit that is full: each accepts the other's entries.
func TestShared(t *testing.T) {
	t.Parallel()
	store := memory.New()
	o := in(store)
	o.Most = 50
	logs := []*audit.Log{audit.New(o), audit.New(o)}
	var all sync.WaitGroup
	for i, l := range logs {
		all.Go(func() {
			for n := range 100 {
				if err := l.Append(t.Context(), audit.Entry{Action: "test", Who: fmt.Sprint(i), Target: fmt.Sprint(n)}); err != nil {
					t.Error(err)
				}
				if _, err := l.Verify(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, l := range logs {
		if ends := verify(t, l); ends.Last != 200 || ends.First != 151 {
			t.Errorf("the entries are %+v", ends)
		}
		if ends, err := l.Ends(t.Context()); err != nil || ends.Last != 200 {
			t.Errorf("the ends are %+v, %v", ends, err)
		}
	}
	// After a process has verified an entry of the other, it notices if the entry is missing.
	if _, err := store.Space(audit.Space).Delete(t.Context(), fmt.Sprintf("entry/%016x", 200), state.Any); err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		for range 2 {
			var broken *audit.BrokenError
			if _, err := l.Verify(t.Context(), nil); !errors.As(err, &broken) {
				t.Errorf("the last entry is gone: got %v", err)
			}
		}
	}
}

// An overtaken is a space that calls before once: just before it next reads which entries were dropped.
type overtaken struct {
	state.Space
	before func()
}

func (o *overtaken) Get(ctx context.Context, key string, most int) (state.Entry, bool, error) {
	if before := o.before; before != nil && key == "dropped" {
		o.before = nil
		before()
	}
	return o.Space.Get(ctx, key, most)
}

// TestOvertaken has two processes. The slow one adds an entry, and before it drops the oldest one, the fast one adds more entries than are kept.
// Entries that the fast one has dropped stay dropped, and the audit is unaltered.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	store := memory.New()
	fast, slow := in(store), in(store)
	space := &overtaken{Space: store.Space(audit.Space)}
	slow.Space = func() state.Space { return space }
	fast.Most, slow.Most = 10, 10
	logs := []*audit.Log{audit.New(fast), audit.New(slow)}
	add := func(l *audit.Log, n int) {
		for range n {
			if err := l.Append(t.Context(), audit.Entry{Action: "test"}); err != nil {
				t.Error(err)
			}
		}
	}
	add(logs[1], 10)
	space.before = func() { add(logs[0], 30) }
	add(logs[1], 1)
	for _, l := range logs {
		if ends := verify(t, l); ends.First != 32 || ends.Last != 41 {
			t.Errorf("the entries are %+v, want 32 to 41", ends)
		}
	}
}

// TestKnown compares the chain with hashes that were kept elsewhere. A chain that somebody has rewritten as a whole, as here with other numbers, must
// not pass.
func TestKnown(t *testing.T) {
	t.Parallel()
	o := in(memory.New())
	o.Most = 10
	l := audit.New(o)
	hashes := map[uint64]string{}
	for i := range 30 {
		add(t, l, fmt.Sprint(i+1))
		ends := verify(t, l)
		hashes[ends.Last] = ends.Hash
	}
	wrong := strings.Repeat("0", 64)
	for _, test := range []struct {
		name  string
		known map[uint64]string
		want  string // a part of the error
	}{
		{"all kept entries, and the last dropped one", map[uint64]string{20: hashes[20], 21: hashes[21], 25: hashes[25], 30: hashes[30]}, ""},
		{"another hash", map[uint64]string{25: wrong}, "the audit was altered: entry 25 has the hash "},
		{"another hash of the last dropped entry", map[uint64]string{20: wrong}, "the audit was altered: entry 20 has the hash "},
		{"an entry that is not kept", map[uint64]string{19: hashes[19], 25: hashes[25]}, "entry 19 is no longer kept, so its hash can't be compared: the first one is 21: name a later one"},
		{"an entry that is not kept, and a missing one", map[uint64]string{19: hashes[19], 31: wrong}, "the audit was altered: entry 31 is missing: the last one is 30"},
		{"none", map[uint64]string{0: wrong}, "entry 0 is no longer kept"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := l.Verify(t.Context(), test.known)
			if got := fmt.Sprint(err); test.want == "" && err != nil || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if isKnown := strings.Contains(test.want, "is no longer kept"); errors.Is(err, audit.ErrDropped) != isKnown {
				t.Errorf("%v is about an entry that was dropped: %t", err, !isKnown)
			}
		})
	}
}

// TestBounded checks that only the last entries are kept, and that the chain stays unaltered even if a process ends while it drops one.
func TestBounded(t *testing.T) {
	t.Parallel()
	store := memory.New()
	o := in(store)
	o.Most = 10
	l := audit.New(o)
	for i := range 35 {
		add(t, l, fmt.Sprint(i+1))
		if ends := verify(t, l); ends.Last != uint64(i+1) || ends.First != uint64(max(1, i+1-9)) {
			t.Errorf("after entry %d the ends are %+v", i+1, ends)
		}
	}
	if all := list(t, l); len(all) != 10 || all[0].Target != "26" {
		t.Errorf("got %d entries, the first about %s", len(all), all[0].Target)
	}
	s := store.Space(audit.Space)
	usage, err := s.Usage(t.Context())
	if err != nil || usage.Entries != 11 {
		t.Errorf("the space holds %+v, %v", usage, err)
	}
	// Entry 25 was dropped by a process that was killed after recording that, but before removing the entry.
	if _, err := s.Set(t.Context(), fmt.Sprintf("entry/%016x", 25), []byte("\x01{}"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	l = audit.New(o)
	if ends := verify(t, l); ends.First != 26 {
		t.Errorf("the ends are %+v", ends)
	}
	// Somebody removes the oldest entry: others are dropped all the same.
	if _, err := s.Delete(t.Context(), fmt.Sprintf("entry/%016x", 26), state.Any); err != nil {
		t.Fatal(err)
	}
	add(t, l, "36")
	if _, err := l.Verify(t.Context(), nil); err == nil {
		t.Error("nothing shows that an entry was removed")
	}
	add(t, l, "37")
	if ends := verify(t, l); ends.First != 28 || ends.Last != 37 {
		t.Errorf("the ends are %+v", ends)
	}
}

// TestRefusals lets an attacker try for days: entries of earlier changes are still kept, and the number of attempts is known.
func TestRefusals(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	store, now := memory.New(), time.Now()
	o := in(store)
	o.Now = func() time.Time { return now }
	l := audit.New(o)
	add(t, l, "the change")
	const tries, days = 50_000, 10
	for range tries {
		now = now.Add(days * 24 * time.Hour / tries)
		l.Refuse(t.Context(), audit.Entry{Action: "token.add", From: "192.0.2.66", Refused: "no token"})
	}
	l.Close()
	l.Close()
	all := list(t, l)
	if len(all) > days*24*6+110 || all[0].Target != "the change" {
		t.Errorf("got %d entries, the first %+v", len(all), all[0])
	}
	told := int64(0)
	for _, r := range all[1:] {
		if told += r.Omitted; r.Action == "token.add" {
			told++
		}
	}
	if told != tries {
		t.Errorf("the entries tell of %d attempts, there were %d", told, tries)
	}
	if last := all[len(all)-1]; last.Action != "refused" && last.Action != "token.add" {
		t.Errorf("the last entry is %+v", last)
	}
	verify(t, l)
	// A burst of attempts, during which the clock is put back again and again.
	burst := audit.New(o)
	for i := range 100_000 {
		now = now.Add(-time.Duration(i%2) * time.Hour)
		burst.Refuse(t.Context(), audit.Entry{Action: "burst"})
	}
	if more := len(list(t, l)) - len(all); more != 100 {
		t.Errorf("a burst has %d entries", more)
	}
	// The burst does not hide the attempts of identified callers.
	burst.Refuse(t.Context(), audit.Entry{Action: "up", Who: "ci", Origin: "issued"})
	if all := list(t, l); all[len(all)-1].Action != "up" || all[len(all)-1].Omitted != 100_000-100 {
		t.Errorf("the last entry is %+v", all[len(all)-1])
	}
	add(t, burst, "after it")
	if all := list(t, burst); all[len(all)-1].Omitted != 0 {
		t.Errorf("the entry after it is %+v", all[len(all)-1])
	}
}

// TestChange checks that an entry is on disk before the change is made, and that a second one is added if the change fails. If no entry can be
// stored, strictness decides.
func TestChange(t *testing.T) {
	t.Parallel()
	failure := errors.New("no such token")
	gone := memory.New()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	good := memory.New()
	for _, test := range []struct {
		name    string
		space   func() state.Space
		strict  bool
		change  error // the error of the change
		want    error
		made    bool
		entries int
	}{
		{"kept", in(good).Space, true, nil, nil, true, 1},
		{"kept, but the change fails", in(good).Space, true, failure, failure, true, 2},
		{"no entry", in(gone).Space, false, nil, nil, true, 0},
		{"no entry, strict", in(gone).Space, true, nil, audit.ErrNotKept, false, 0},
		{"no state", func() state.Space { return nil }, false, nil, nil, true, 0},
		{"no state, strict", func() state.Space { return nil }, true, nil, audit.ErrNotKept, false, 0},
	} {
		var log bytes.Buffer
		l := audit.New(audit.Options{Space: test.space, Strict: func() bool { return test.strict }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		before, made := 0, false
		if test.entries > 0 {
			before = len(list(t, l))
		}
		err := l.Change(t.Context(), audit.Entry{Action: "token.revoke", Target: "ci"}, func(ctx context.Context) error {
			if made = true; test.entries > 0 && len(list(t, l)) != before+1 {
				t.Errorf("%s: there is no entry before the change is made", test.name)
			}
			return test.change
		})
		if !errors.Is(err, test.want) || made != test.made {
			t.Errorf("%s: got %v, made: %t", test.name, err, made)
		}
		if test.entries == 0 {
			if !strings.Contains(log.String(), "could not be stored") || !strings.Contains(log.String(), "action=token.revoke target=ci") {
				t.Errorf("%s: logged %s", test.name, log.String())
			}
			continue
		}
		all := list(t, l)[before:]
		if len(all) != test.entries || all[0].Refused != "" || test.change != nil && all[1].Refused != failure.Error() {
			t.Errorf("%s: got %+v", test.name, all)
		}
	}
	l := audit.New(in(good))
	leaving, leave := context.WithCancel(t.Context())
	before := len(list(t, l))
	if err := l.Change(leaving, audit.Entry{Action: "leaves"}, func(ctx context.Context) error { leave(); return ctx.Err() }); err != nil || len(list(t, l)) != before+1 {
		t.Errorf("a caller that left after its entry was stored: got %v and %d entries, want the change and one entry", err, len(list(t, l))-before)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 100 { // a caller who has gone may or may not have had a turn, but there is no change without an entry
		made, before := false, len(list(t, l))
		err := l.Change(cancelled, audit.Entry{Action: "left", Target: fmt.Sprint(i)}, func(context.Context) error { made = true; return nil })
		if after := len(list(t, l)); made != (after == before+1) || made == (err != nil) {
			t.Errorf("%d: made %t, %d entries, %v", i, made, after-before, err)
		}
	}
	verify(t, l)
}

// TestHostile: nothing that a caller says makes an entry large, breaks its JSON, or shows a secret.
func TestHostile(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := in(memory.New())
	o.Clean = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[secret]") }
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	l := audit.New(o)
	long := strings.Repeat("\x00\xff\u202e\n", 100_000)
	for _, e := range []audit.Entry{
		{Action: long, Who: long, From: long, Target: long, RequestID: long, Refused: long, Before: json.RawMessage(long), After: json.RawMessage(`"` + strings.Repeat("a", 1<<20) + `"`)},
		{Action: strings.Repeat("<\"", 1000), Who: strings.Repeat("&", 1000), Target: strings.Repeat("<", 1000), Refused: strings.Repeat("<", 1000), Before: json.RawMessage(`"` + strings.Repeat("<", 600) + `"`), After: json.RawMessage(`"` + strings.Repeat("<", 700) + `"`)},
		{Action: "hunter2", Who: "hunter2", From: "hunter2", Target: "a hunter2 b", Refused: "hunter2", Before: json.RawMessage(`{"k":"hunter2"}`), After: json.RawMessage(`hunter2`)},
		{Action: "json", Before: json.RawMessage(`{"a":`), After: json.RawMessage(`{} {}`)},
		{Action: "json", Before: json.RawMessage("\n{ \"a\" : 1 }"), After: json.RawMessage(strings.Repeat("[", 900) + strings.Repeat("]", 900))},
	} {
		if err := l.Append(t.Context(), e); err != nil {
			t.Errorf("%.60s: %v", e.Action, err)
		}
	}
	for _, r := range list(t, l) {
		text, err := json.Marshal(r)
		if err != nil || len(text) > 32<<10 {
			t.Errorf("entry %d has %d bytes, %v", r.Number, len(text), err)
		}
		if bytes.ContainsAny(text, "\x00\n\u202e") || bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("entry %d: %.2000s", r.Number, text)
		}
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Error("the log shows a secret")
	}
	if all := list(t, l); string(all[4].Before) != `{"a":1}` || string(all[2].Before) != `{"k":"[secret]"}` || string(all[2].After) != `"[secret]"` {
		t.Errorf("got %s, %s, %s", all[4].Before, all[2].Before, all[2].After)
	}
	verify(t, l)
}

// A gated is a space in which reads wait at a gate, so that a verification can be held up.
type gated struct {
	state.Space
	gate chan struct{}
}

func (s gated) Usage(ctx context.Context) (state.Usage, error) {
	<-s.gate
	return s.Space.Usage(ctx)
}

// TestManyVerify lets a caller who may only read start one verification after another, without end: a change waits only for the verification in
// progress.
func TestManyVerify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gated{memory.New().Space(audit.Space), make(chan struct{})}
		l := audit.New(audit.Options{Space: func() state.Space { return s }})
		add(t, l, "1")
		const many = 50
		for range many {
			go func() {
				if _, err := l.Verify(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait() // one verification is running
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := l.Verify(left, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has left still waits: %v", err)
		}
		changed := make(chan struct{})
		go func() {
			add(t, l, "2")
			close(changed)
		}()
		synctest.Wait()
		s.gate <- struct{}{}
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("a change waits for more than one verification")
		}
		for range many - 1 {
			s.gate <- struct{}{}
		}
		synctest.Wait() // no verification begins or ends any more
	})
}

// TestMany lets many goroutines append at once, while others verify the chain.
func TestMany(t *testing.T) {
	t.Parallel()
	o := in(memory.New())
	o.Most = 100
	l := audit.New(o)
	var all sync.WaitGroup
	var failed atomic.Int64
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				if err := l.Append(t.Context(), audit.Entry{Action: "test", Target: fmt.Sprint(i, j)}); err != nil {
					failed.Add(1)
				}
				if _, err := l.Verify(t.Context(), nil); err != nil {
					t.Error(err)
				}
				if _, _, err := l.List(t.Context(), 0, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if ends := verify(t, l); ends.Last != 400 || ends.First != 301 || failed.Load() > 0 {
		t.Errorf("the ends are %+v, and %d were not kept", ends, failed.Load())
	}
}

// TestNothing reads a log without entries, and checks that this makes no files.
func TestNothing(t *testing.T) {
	t.Parallel()
	store := local.Defer(t.TempDir()+"/state", local.Options{})
	for _, space := range []func() state.Space{in(store).Space, func() state.Space { return nil }} {
		l := audit.New(audit.Options{Space: space})
		if ends := verify(t, l); ends != (audit.Ends{}) {
			t.Errorf("the ends are %+v", ends)
		}
		if all := list(t, l); len(all) > 0 {
			t.Errorf("got %+v", all)
		}
		l.Close()
	}
	if store.Opened() != nil {
		t.Error("a state was made")
	}
}
