package directory

import (
	"io/fs"
	"time"

	"github.com/toolsrv/toolsrv/internal/touched"
)

// intervals are the periods of a Directory. All of them derive from the poll interval, so that a test with a short one is fast.
type intervals struct {
	poll     time.Duration // the time between two scans if the system announces no changes
	safety   time.Duration // the time between two scans if the system announces changes
	debounce time.Duration // the time from the beginning of a watch to the scan that finds earlier changes
	settle   time.Duration // how long a changed file must stay the same before it is read
	quiet    time.Duration // how long a file must not have been written to before it is read
}

// newIntervals returns the periods for a poll interval; 0 means 500 ms.
func newIntervals(poll time.Duration) intervals {
	if poll <= 0 {
		poll = 500 * time.Millisecond
	}
	return intervals{
		poll:     poll,
		safety:   10 * poll,
		debounce: min(poll/10, 50*time.Millisecond),
		settle:   min(poll/5, 100*time.Millisecond),
		quiet:    min(poll*4/5, 400*time.Millisecond),
	}
}

// unsettled returns how much longer a file must stay the same before it is read, if it has been the same since a given time. It waits because a
// writer may pause, and the part written so far may be a valid module. A file that was renamed into its place was complete at that moment.
func (i intervals) unsettled(info fs.FileInfo, since, now time.Time) time.Duration {
	left := since.Add(i.settle).Sub(now)
	if touchedLast(info) {
		if changed, _ := touched.At(info); changed.Before(since) { // and it has been the same since then
			left = changed.Add(i.settle).Sub(now)
		}
		return left
	}
	written := info.ModTime()
	if written.After(since) {
		written = since // the clock of the file system is ahead
	}
	return max(left, written.Add(i.quiet).Sub(now))
}

// touchedLast reports whether the last change to a file was not a write but a new name, owner or mode: then its change time is later than its
// modification time. It returns false if the system has no change time.
func touchedLast(info fs.FileInfo) bool {
	changed, ok := touched.At(info)
	return ok && changed.After(info.ModTime())
}
