package server

import "sync"

// inFlight counts the requests that are being answered, by path.
type inFlight struct {
	mu     sync.Mutex
	count  int
	slots  []slot
	free   []int // indexes of the free slots
	closed bool
	empty  chan struct{} // made by close; closed when no request is left
}

// A slot holds a request. Slots are used again, so that a request allocates nothing.
type slot struct {
	path  string
	taken bool
}

// add counts a request until remove is called with its slot. After close it returns false, and the request is not counted.
func (f *inFlight) add(path string) (slotIndex int, counted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, false
	}
	f.count++
	if last := len(f.free) - 1; last >= 0 {
		slotIndex, f.free = f.free[last], f.free[:last]
	} else {
		slotIndex, f.slots = len(f.slots), append(f.slots, slot{})
	}
	f.slots[slotIndex] = slot{path, true}
	return slotIndex, true
}

// remove stops counting the request in a slot.
func (f *inFlight) remove(slotIndex int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count--
	f.slots[slotIndex] = slot{}
	f.free = append(f.free, slotIndex)
	if f.closed && f.count == 0 {
		close(f.empty)
	}
}

// byPath returns how many requests are in flight, by path.
func (f *inFlight) byPath() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := map[string]int{}
	for _, s := range f.slots {
		if s.taken {
			calls[s.path]++
		}
	}
	return calls
}

// close stops counting new requests. The channel that it returns is closed when all counted requests have been answered.
func (f *inFlight) close() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed, f.empty = true, make(chan struct{})
		if f.count == 0 {
			close(f.empty)
		}
	}
	return f.empty
}
