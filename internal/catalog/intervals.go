package catalog

import "time"

// intervals are the periods of a Catalog. All of them derive from Options.Poll, so that a test with a short one is fast.
type intervals struct {
	retry    time.Duration // the pause until a source that could not be listed is listed again
	debounce time.Duration // the pause from a reported change to the listing, and between two generations while many files are added
	recheck  time.Duration // the pause until the next listing after a file has changed while it was read
	stall    time.Duration // the time after which a slow read no longer holds up other files
	wait     time.Duration // how long the start waits for slow files, and how long clients are asked to wait after the start
	timeout  time.Duration // how long a listing or a read may take
}

// newIntervals returns the periods for a poll interval; 0 means 500 ms.
func newIntervals(poll time.Duration) intervals {
	if poll <= 0 {
		poll = 500 * time.Millisecond
	}
	return intervals{
		retry:    poll,
		debounce: min(poll/10, 50*time.Millisecond),
		recheck:  min(poll/5, 100*time.Millisecond),
		stall:    2 * poll,
		wait:     60 * poll,
		timeout:  max(120*poll, 5*time.Second),
	}
}
