//go:build unix && !linux

package linmem

// avoidHugePages does nothing: only Linux makes pages huge unasked.
func avoidHugePages([]byte) {}
