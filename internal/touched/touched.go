// Package touched tells whether a file was changed. It uses the change time that the system keeps, since programs can set the modification time as
// they like.
package touched

import (
	"io/fs"
	"os"
	"time"
)

// Same reports whether a file has the same content at two times, as far as that can be told without reading it. Size and modification time are not
// enough: reproducible builds give every version the same time, and cp -p copies it when it overwrites a file.
func Same(a, b fs.FileInfo) bool {
	if a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
		return false
	}
	then, _ := At(a)
	now, _ := At(b)
	return then.Equal(now)
}

// Since reports whether a file was changed at a time or later. The file system's clock may be behind by a tick; a change time far in the future is
// ignored.
func Since(info fs.FileInfo, began time.Time) bool {
	const tick, ahead = 20 * time.Millisecond, 2 * time.Second
	last := info.ModTime()
	if changed, ok := At(info); ok && changed.After(last) {
		last = changed
	}
	return last.After(began.Add(-tick)) && last.Before(time.Now().Add(ahead))
}
