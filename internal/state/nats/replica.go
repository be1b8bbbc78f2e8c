package nats

import (
	"container/heap"
	"fmt"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A replica is a copy of the stream's spaces, up to a position. The store's lock guards it; entries never change.
type replica struct {
	spaces   map[string]*content
	timed    map[string]*content // spaces with entries that expire
	position uint64              // the last sequence that was applied
	anew     bool                // everything must be read again, since something is missing
	round    uint32              // counts how often everything was read
	taken    uint64              // how many messages were applied
	entries  int                 // also counts spaces, which stay even when they are empty
	names    int64               // bytes of the names of keys and spaces
	values   int64               // bytes of the values held
	waiters  []waiter
}

// A waiter waits until the copy has reached a sequence.
type waiter struct {
	sequence uint64
	done     chan struct{}
}

// content is what a space holds.
type content struct {
	turn    uint64 // the sequence of the space's last write; 0 means never written
	entries map[string]*entry
	keys    ordered
	due     due
	usage   state.Usage
}

// An entry is what the copy knows of a key. Only the fields at and round change; they belong to the replica.
type entry struct {
	key     string
	version uint64 // the sequence of its head
	expires int64  // Unix milliseconds; 0 means never
	size    int
	parts   int
	held    bool
	value   []byte
	at      int // its index in due
	round   uint32
}

func newReplica() replica {
	return replica{spaces: map[string]*content{}, timed: map[string]*content{}}
}

func (e *entry) entry(value []byte) state.Entry {
	of := state.Entry{Key: e.key, Value: value, Version: e.version}
	if e.expires != 0 {
		of.Expires = time.UnixMilli(e.expires)
	}
	return of
}

func (e *entry) expired(now int64) bool { return e.expires != 0 && e.expires <= now }

// counts returns the bytes that an entry counts toward usage and quota.
func (e *entry) counts() int64 { return int64(len(e.key)+e.size) + state.Overhead }

// get returns the entry of a key, or nil.
func (r *replica) get(space, key string, now int64) *entry {
	c := r.spaces[space]
	if c == nil {
		return nil
	}
	if e := c.entries[key]; e != nil && !e.expired(now) {
		return e
	}
	return nil
}

// maxSkipped is how many expired entries list skips in one call.
const maxSkipped = 20_000

// list implements List of a space.
func (r *replica) list(space, prefix, after string, limit int, now int64) (keys []string, more bool, err error) {
	c := r.spaces[space]
	if c == nil {
		return nil, false, nil
	}
	skipped := 0
	for key := range c.keys.from(max(prefix, after)) {
		switch {
		case !strings.HasPrefix(key, prefix):
			return keys, false, nil
		case key == after:
		case c.entries[key].expired(now):
			if skipped++; skipped < maxSkipped {
				continue
			}
			if len(keys) == 0 {
				err = fmt.Errorf("%w: %d entries have just expired: try again in some seconds", state.ErrUnavailable, skipped)
			}
			return keys, true, err
		case len(keys) == limit:
			return keys, true, nil
		default:
			keys = append(keys, key)
		}
	}
	return keys, false, nil
}

// content returns a space's content for changing. It makes it if missing.
func (r *replica) content(space string) *content {
	c := r.spaces[space]
	if c == nil {
		c = &content{entries: map[string]*entry{}}
		r.spaces[space] = c
		r.entries++
		r.names += int64(len(space))
	}
	return c
}

// put stores the head of an entry. It reports whether the head was new.
func (r *replica) put(space string, e entry, value []byte) bool {
	c := r.content(space)
	if old := c.entries[e.key]; old != nil && old.version >= e.version {
		old.round = r.round
		return false
	}
	r.drop(space, e.key)
	e.round, e.at = r.round, -1
	if e.parts == 0 && len(value) <= inlineBytes && r.values+int64(len(value)) <= maxValues {
		e.held, e.value = true, append([]byte{}, value...)
		r.values += int64(len(value))
	}
	added := &e
	c.entries[e.key] = added
	c.keys.add(e.key)
	c.usage.Entries++
	c.usage.Bytes += added.counts()
	r.entries++
	r.names += int64(len(e.key))
	if e.expires != 0 {
		heap.Push(&c.due, added)
		r.timed[space] = c
	}
	return true
}

// delete removes an entry that was deleted. A node that lags behind may report the deletion of a key that was written again since.
func (r *replica) delete(space, key string, sequence uint64) bool {
	if c := r.spaces[space]; c == nil || c.entries[key] == nil || c.entries[key].version > sequence {
		return false
	}
	return r.drop(space, key)
}

// drop removes the entry of a key. It reports whether there was one.
func (r *replica) drop(space, key string) bool {
	c := r.spaces[space]
	if c == nil {
		return false
	}
	old := c.entries[key]
	if old == nil {
		return false
	}
	delete(c.entries, key)
	c.keys.remove(key)
	c.usage.Entries--
	c.usage.Bytes -= old.counts()
	r.entries--
	r.names -= int64(len(key))
	r.values -= int64(len(old.value))
	if old.at >= 0 {
		if heap.Remove(&c.due, old.at); len(c.due) == 0 {
			delete(r.timed, space)
		}
	}
	return true
}

// missing returns the keys that were not seen when everything was read last.
func (r *replica) missing() (gone [][2]string) {
	for space, c := range r.spaces {
		for key, e := range c.entries {
			if e.round != r.round {
				gone = append(gone, [2]string{space, key})
			}
		}
	}
	return gone
}

// advance records that everything up to a sequence was applied.
func (r *replica) advance(sequence uint64) {
	if sequence <= r.position {
		return
	}
	r.position = sequence
	left := r.waiters[:0]
	for _, w := range r.waiters {
		if w.sequence <= sequence {
			close(w.done)
		} else {
			left = append(left, w)
		}
	}
	clear(r.waiters[len(left):])
	r.waiters = left
}

// due is a heap of the entries that expire, the earliest first.
type due []*entry

func (d due) Len() int           { return len(d) }
func (d due) Less(i, j int) bool { return d[i].expires < d[j].expires }
func (d due) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

// Push implements heap.Interface.
func (d *due) Push(x any) {
	e := x.(*entry)
	e.at = len(*d)
	*d = append(*d, e)
}

// Pop implements heap.Interface.
func (d *due) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	e.at = -1
	return e
}

// expired returns up to most entries that have expired.
func (d due) expired(now int64, most int) (all []*entry) {
	for next := []int{0}; len(next) > 0 && len(all) < most; next = next[1:] {
		if i := next[0]; i < len(d) && d[i].expired(now) {
			all = append(all, d[i])
			next = append(next, 2*i+1, 2*i+2)
		}
	}
	return all
}
