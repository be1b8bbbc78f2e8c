package server

import "time"

// A queue has connections in the order in which they were added. Adding and removing one allocates nothing, since each request does both.
type queue struct {
	first, last *place
	n           int
}

// A place is an entry of a queue, which stands for a connection or for one of its streams.
type place struct {
	conn       *watchedConn
	stream     *stream   // nil if it is the connection's own place
	late       time.Time // when the stopping server began to wait for the rest of the request; zero if it doesn't wait
	since      time.Time
	in         *queue // nil: in none
	prev, next *place
}

// push adds a place at the end, with the current time. It must be in no queue.
func (q *queue) push(p *place) {
	p.in, p.since, p.prev = q, time.Now(), q.last
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
	q.n++
}

// leave removes the place from its queue, if it is in one.
func (p *place) leave() {
	q := p.in
	if q == nil {
		return
	}
	if p.prev == nil {
		q.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		q.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	q.n--
	p.in, p.prev, p.next = nil, nil, nil
}
