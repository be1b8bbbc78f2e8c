// Package touched tells when a file was changed, by what the system keeps of it beside the time of its content, which programs set as they like.
package touched

import (
	"io/fs"
	"os"
	"time"
)

// Same reports whether a file has the same content at two times, as far as that can be told without reading it. Size and time are not enough: builds
// that can be repeated give every version the same time, and cp -p writes it into the file that there is.
func Same(a, b fs.FileInfo) bool {
	if a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
		return false
	}
	then, _ := At(a)
	now, _ := At(b)
	return then.Equal(now)
}

// Since reports whether a file was changed at a time or later, by a clock that may be behind by a tick. One that is far
// ahead tells nothing.
func Since(info fs.FileInfo, began time.Time) bool {
	const tick, ahead = 20 * time.Millisecond, 2 * time.Second
	last := info.ModTime()
	if changed, ok := At(info); ok && changed.After(last) {
		last = changed
	}
	return last.After(began.Add(-tick)) && last.Before(time.Now().Add(ahead))
}
