package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// size returns how many writes wait.
func (q *queue) size() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.waiting {
		n += len(waiting)
	}
	return n
}

// TestTurns has one space write much, and others little. No other space waits for all writes of the first one.
func TestTurns(t *testing.T) {
	t.Parallel()
	q := queue{wake: make(chan struct{}, 1)}
	push := func(space string, size int) *write {
		w := &write{space: space, key: space, record: make([]byte, size)}
		if !q.push(w) {
			t.Fatal("the queue is closed")
		}
		return w
	}
	take := func() string {
		batch, closed := q.take()
		if closed {
			return "closed"
		}
		var names strings.Builder
		for _, w := range batch {
			names.WriteString(w.space)
		}
		return names.String()
	}
	expect := func(want string) {
		t.Helper()
		if got := take(); got != want {
			t.Errorf("the batch has %q, want %q", got, want)
		}
	}
	for range 6 {
		push("a", 1<<20)
	}
	push("b", 1)
	push("c", 1)
	given := push("c", 1)
	q.withdraw(given)
	q.withdraw(given)
	expect("abcaaa") // until there are 4 MiB
	push("b", 1)
	expect("aba")
	expect("")
	q.withdraw(push("a", 1))
	expect("")
	for range maxBatch {
		push("a", 1)
	}
	push("b", 1)
	if got := take(); len(got) != maxBatch || got[:2] != "ab" {
		t.Errorf("a batch has %d writes, the first ones of %q", len(got), got[:2])
	}
	push("a", 1)
	push("c", 1)
	taken, _ := q.take()
	push("b", 1)
	push("c", 1)
	q.putBack(taken[1:])
	expect("cabc")
	push("a", 1)
	q.close()
	expect("a")
	expect("closed")
	if q.push(&write{space: "a"}) {
		t.Error("a closed queue takes a write")
	}
}

// TestGroups has 500 writers wait before the writer begins. They share one transaction. A write that was given up is not in it.
func TestGroups(t *testing.T) {
	t.Parallel()
	s, err := prepare(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := func() (id int) {
		if err := s.db.bolt.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }); err != nil {
			t.Fatal(err)
		}
		return id
	}
	const writers = 500
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if _, err := s.Space("a").Set(t.Context(), fmt.Sprint(i), nil, state.Any, state.SetOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	given := make(chan error)
	go func() {
		_, err := s.Space("b").Set(ctx, "given up", nil, state.Any, state.SetOptions{})
		given <- err
	}()
	for s.queue.size() <= writers {
		runtime.Gosched()
	}
	cancel(enough)
	if err := <-given; !errors.Is(err, enough) {
		t.Errorf("a caller that gave up gets the error %v", err)
	}
	before := id()
	go s.write()
	wg.Wait()
	if after := id(); after != before+1 {
		t.Errorf("%d writes took %d transactions", writers, after-before)
	}
	if _, found, err := s.Space("b").Get(t.Context(), "given up", state.MaxValue); found || err != nil {
		t.Errorf("the write that was given up was made: %t, %v", found, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// setting returns a write that sets a key to a value of that many bytes.
func setting(space, key string, size int, expires int64) *write {
	return &write{space: space, key: key, record: newRecord(make([]byte, size), expires), expires: expires, expect: state.Any, done: make(chan outcome, 1)}
}

// TestListAmongExpired lists a space in which very many entries have expired at once. One call of List skips only a limited number of them.
func TestListAmongExpired(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	s, err := prepare(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(key string, expires int64) *write { return setting("a", key, 0, expires) }
	expect := func(after, want string, fails bool) {
		t.Helper()
		keys, more, err := s.Space("a").List(t.Context(), "", after, 0)
		if got := fmt.Sprint(keys, more); got != want || errors.Is(err, state.ErrUnavailable) != fails {
			t.Errorf("after %q: got %s, %v, want %s", after, got, err, want)
		}
	}
	writes := []*write{add("a", 0), add("z", 0)}
	for i := range maxSkipped {
		writes = append(writes, add(fmt.Sprint("k", i), 1))
	}
	for len(writes) > 0 {
		writes = s.commit(writes, 0)
	}
	expect("", "[a] true", false)
	expect("a", "[] true", true)
	s.commit(nil, 1)
	expect("a", "[z] false", false)
	for len(s.due) > 0 {
		s.commit(nil, maxSkipped)
	}
	if u, err := s.Space("a").Usage(t.Context()); u.Entries != 2 || len(s.due) != 0 || err != nil {
		t.Errorf("the space holds %+v, and these spaces have entries that expire: %v, %v", u, s.due, err)
	}
	go s.write()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestRewritesAreBounded adds and removes small entries between large ones, so that the large ones' pages are written again. No transaction may write
// too many pages, however small its entries are.
// Proves: State is whole and apart
func TestRewritesAreBounded(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	const entries, large = 256, 256 << 10
	s, err := prepare(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(key string, size int, expires int64) *write { return setting("a", key, size, expires) }
	// commits returns how many transactions it takes until no write is left.
	commits := func(writes ...*write) (n int) {
		for rest := writes; len(rest) > 0; n++ {
			rest = s.commit(rest, 0)
		}
		for _, w := range writes {
			if o := <-w.done; o.err != nil {
				t.Fatalf("%s: %v", w.key, o.err)
			}
		}
		return n
	}
	for i := range entries {
		commits(add(fmt.Sprintf("%03d a", i), large, 0))
	}
	const least = entries * large / (2 * maxRewrites)
	var small []*write
	for i := range entries {
		small = append(small, add(fmt.Sprintf("%03d b", i), 0, 1))
	}
	if n := commits(small...); n < least {
		t.Errorf("entries were set in %d transactions, want %d at least", n, least)
	}
	usage := func() state.Usage {
		u, err := s.Space("a").Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	// The quota has room for half of the expired entries: they have to be deleted first.
	full := add("c", entries/2*(len("000 b")+state.Overhead)-state.Overhead, 0)
	full.quota = state.Usage{Bytes: usage().Bytes}
	other := setting("b", "k", 0, 0)
	rest := s.commit([]*write{full, other}, 0)
	if rest = s.commit(rest, 0); len(rest) != 1 || rest[0] != full || len(other.done) != 1 {
		t.Errorf("another space waits for more than one transaction: %d writes are left", len(rest))
	}
	if n := commits(rest...); n < least/2 || usage().Entries > 2*entries+1-entries/2 {
		t.Errorf("room was made in %d transactions, want %d at least; then there is %+v", n, least/2, usage())
	}
	n := 0
	for ; len(s.due) > 0; n++ {
		s.commit(nil, sweepAlone)
	}
	if n < least/2 || usage().Entries != entries+1 {
		t.Errorf("what has expired was deleted in %d transactions, want %d at least; then there is %+v", n, least/2, usage())
	}
	go s.write()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestOneSpaceFails has a batch fail because of one of its spaces, for which the disk has no room, or because of a sweep. The other spaces'
// writes must not fail.
// Proves: State is whole and apart
func TestOneSpaceFails(t *testing.T) {
	t.Parallel()
	s, err := prepare(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(space, key string) *write { return setting(space, key, 0, 0) }
	check := func(writes ...*write) {
		t.Helper()
		if rest := s.commit(writes, 1); len(rest) != 0 {
			t.Errorf("%d writes are postponed", len(rest))
		}
		for i, w := range writes {
			if o := <-w.done; (o.err != nil) != (w.space == "fails") {
				t.Errorf("write %d to %s: %v", i, w.space, o.err)
			}
		}
	}
	check(add("a", "0"), add("fails", strings.Repeat("k", bbolt.MaxKeySize+1)), add("b", "1"), add("c", "2"), add("a", "3"))
	s.due["a"], s.tight = 1, false
	if err := s.update(func(tx *bbolt.Tx) error { return tx.Bucket(dueOf("a")).Put(dueKey(1, "not there"), nil) }); err != nil {
		t.Fatal(err)
	}
	check(add("a", "4"))
	delete(s.due, "a")
	go s.write()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
