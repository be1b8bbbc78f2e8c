//go:build unix

package ownership

import (
	"io/fs"
	"os"
	"syscall"
)

const hasOwners = true

// self returns the effective user of this process.
func self() user { return user{uint32(os.Geteuid()), uint32(os.Getegid())} }

// ownerOf returns the user and the group that own a file.
func ownerOf(info fs.FileInfo) (user, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return user{}, false
	}
	return user{stat.Uid, stat.Gid}, true
}
