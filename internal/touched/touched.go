// Package touched tells when a file was changed, by what the system keeps of it beside the time of its content, which programs set as they like.
package touched

import (
	"io/fs"
	"reflect"
	"time"
)

// At returns when a file, its name, owner or mode was last changed, where the system tells.
func At(info fs.FileInfo) (time.Time, bool) {
	stat := reflect.Indirect(reflect.ValueOf(info.Sys())) // a syscall.Stat_t, whose field has another name on each system
	if stat.Kind() != reflect.Struct {
		return time.Time{}, false
	}
	for _, name := range []string{"Ctim", "Ctimespec"} {
		if t := stat.FieldByName(name); t.IsValid() && t.Kind() == reflect.Struct {
			seconds, nanoseconds := t.FieldByName("Sec"), t.FieldByName("Nsec")
			if seconds.CanInt() && nanoseconds.CanInt() {
				return time.Unix(seconds.Int(), nanoseconds.Int()), true
			}
		}
	}
	return time.Time{}, false
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
