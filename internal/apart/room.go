package apart

import (
	"slices"
	"sync"
)

// A Room is an amount of memory that processes share. Waiters are served in order, so that one that needs a lot is not overtaken forever. It is safe
// for concurrent use.
type Room struct {
	mu      sync.Mutex
	free    int64
	waiting []*claim
}

type claim struct {
	bytes   int64
	granted chan struct{}
}

// NewRoom returns a room of that many bytes.
func NewRoom(bytes int64) *Room { return &Room{free: bytes} }

// Take waits until that many bytes are free, and takes them. It returns false if done is closed first.
func (r *Room) Take(bytes int64, done <-chan struct{}) bool {
	r.mu.Lock()
	if len(r.waiting) == 0 && bytes <= r.free {
		r.free -= bytes
		r.mu.Unlock()
		return true
	}
	c := &claim{bytes, make(chan struct{})}
	r.waiting = append(r.waiting, c)
	r.mu.Unlock()
	select {
	case <-c.granted:
		return true
	case <-done:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, c)
	if i < 0 { // Take got the bytes meanwhile
		return true
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.serve()
	return false
}

// Give returns bytes to the room.
func (r *Room) Give(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += bytes
	r.serve()
}

// serve serves waiters in order, until there is too little left for the next one.
func (r *Room) serve() {
	for len(r.waiting) > 0 && r.waiting[0].bytes <= r.free {
		r.free -= r.waiting[0].bytes
		close(r.waiting[0].granted)
		r.waiting = r.waiting[1:]
	}
}
