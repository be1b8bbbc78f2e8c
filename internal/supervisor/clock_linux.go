package supervisor

import "golang.org/x/sys/unix"

// monotonic returns the system's monotonic time in microseconds, which package time does not expose.
func monotonic() (usec int64, known bool) {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0, false
	}
	return now.Nano() / 1000, true
}
