//go:build !linux

package supervisor

// monotonic returns 0, since only systemd needs the time.
func monotonic() (usec int64, known bool) { return 0, false }
