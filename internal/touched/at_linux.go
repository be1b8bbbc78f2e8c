package touched

import (
	"io/fs"
	"syscall"
	"time"
)

// At returns when a file, its name, owner or mode was last changed, where the system tells.
func At(info fs.FileInfo) (time.Time, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(stat.Ctim.Unix()), true
}
