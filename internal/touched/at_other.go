//go:build !linux

package touched

import (
	"io/fs"
	"reflect"
	"time"
)

// At returns when a file, its name, owner or mode was last changed, where the system tells.
func At(info fs.FileInfo) (time.Time, bool) {
	stat := reflect.Indirect(reflect.ValueOf(info.Sys())) // a syscall.Stat_t, whose field has a different name on each system
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
