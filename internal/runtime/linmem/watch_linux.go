package linmem

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// The first write to a page that does not yet belong to the memory alone is a page fault, and Linux counts the faults of each thread (ru_minflt and
// ru_majflt of getrusage(2); mm_account_fault in the kernel's mm/memory.c). Suppose that only one thread has used a memory since its dirty pages were
// found, and that this thread has had no fault. Then no other page is dirty, and no search is needed. Reading the counters twice takes 0.5 µs for any
// size; a scan takes 1 µs for 18 granules and 2.9 for 1,000.
//
// The counters also count faults that have nothing to do with the memory. Then the dirty pages are searched for.

// faults is how many page faults a thread has had.
type faults struct{ minor, major int64 }

// Watch promises that only this goroutine uses the memory until it calls Unwatch or Reset. Then Reset may not have to search for dirty pages. Watch
// binds the goroutine to its thread, so a caller that is about to wait should call Unwatch first. Calling Watch is optional. It does nothing if it
// would not help, or is called twice.
func (m *Memory) Watch() {
	f := &m.finder
	if f.found == nil || f.watched || m.ages(m.resets+1) {
		return
	}
	runtime.LockOSThread()
	if f.faults, f.watched = f.countFaults(); !f.watched {
		runtime.UnlockOSThread()
	}
}

// Unwatch ends what Watch has begun.
func (m *Memory) Unwatch() {
	if m.finder.watched {
		m.finder.watched = false
		runtime.UnlockOSThread()
	}
}

// Pause interrupts the watch until Resume. Nobody may use the memory in between. Pause returns false if there is nothing to resume: there was no
// watch, or the thread has had a fault.
func (m *Memory) Pause() bool { return m.untouched() }

// Resume continues the watch that Pause has interrupted. The goroutine may be on another thread by now.
func (m *Memory) Resume() { m.Watch() }

// untouched is Unwatch, and also reports whether all dirty pages are known.
func (m *Memory) untouched() bool {
	f := &m.finder
	if !f.watched {
		return false
	}
	now, ok := f.countFaults()
	m.Unwatch()
	return ok && now == f.faults && f.found != nil
}

// countFaults counts the page faults of the calling thread.
func (f *finder) countFaults() (faults, bool) {
	if unix.Getrusage(unix.RUSAGE_THREAD, &f.usage) != nil {
		return faults{}, false
	}
	return faults{int64(f.usage.Minflt), int64(f.usage.Majflt)}, true
}

// seesFaults reports whether a first write to each of those pages is counted. A system that does not count faults must not be trusted when
// it reports none.
func (f *finder) seesFaults(pages ...*byte) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, p := range pages {
		before, ok := f.countFaults()
		*p++
		after, still := f.countFaults()
		if !ok || !still || before == after {
			return false
		}
	}
	return true
}
