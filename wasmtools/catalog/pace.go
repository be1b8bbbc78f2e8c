package catalog

import "time"

// pace holds the catalog's periods. All follow from the poll interval, so that a test that polls fast is fast in all.
type pace struct {
	poll     time.Duration // between two scans where changes are not told
	safety   time.Duration // between two scans where they are
	debounce time.Duration // from an event to its scan, and between two generations while many files come in
	settle   time.Duration // how long a changed file must look the same before it is read
}

// newPace returns the periods for a poll interval; 0 means 500 ms.
func newPace(poll time.Duration) pace {
	if poll <= 0 {
		poll = 500 * time.Millisecond
	}
	return pace{
		poll:     poll,
		safety:   10 * poll,
		debounce: min(poll/10, 50*time.Millisecond),
		settle:   min(poll/5, 100*time.Millisecond),
	}
}
