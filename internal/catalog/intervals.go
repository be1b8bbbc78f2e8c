package catalog

import "time"

// intervals are the periods of a Catalog. All follow from Options.Poll, so that a test that polls fast is fast in all.
type intervals struct {
	retry    time.Duration // until a source that could not be listed is listed again
	debounce time.Duration // from a change that is told to the listing, and between two generations while many files come in
	recheck  time.Duration // until the next listing, where a file changed while it was read
	stall    time.Duration // after which a read no longer keeps other files from being read
	wait     time.Duration // how long the start waits when all that is left takes long; how long clients wait after it
	timeout  time.Duration // of a listing, and of a read
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
