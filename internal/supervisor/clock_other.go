//go:build !linux

package supervisor

// monotonic returns no time, since only systemd asks for it.
func monotonic() (usec int64, known bool) { return 0, false }
