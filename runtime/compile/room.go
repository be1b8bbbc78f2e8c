package compile

import "sync"

// A room is memory that compiling may take. Those who wait for some are served in their order, so that one who needs much gets it, too.
type room struct {
	mu      sync.Mutex
	free    int64
	waiting []*claim
}

type claim struct {
	bytes   int64
	granted chan struct{}
}

// take takes so many bytes as soon as there are as many. It reports false where closed is closed first.
func (r *room) take(bytes int64, closed <-chan struct{}) bool {
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
	case <-closed: // nobody else is served any more
		return false
	}
}

// give gives bytes back.
func (r *room) give(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += bytes
	for len(r.waiting) > 0 && r.waiting[0].bytes <= r.free {
		r.free -= r.waiting[0].bytes
		close(r.waiting[0].granted)
		r.waiting = r.waiting[1:]
	}
}
