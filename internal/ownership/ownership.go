// Package ownership checks that nobody but root and the process's own user can change what is at a path.
//
// It is for paths whose content is trusted because of where it is: compiled code, and the tools of a service. Only root and the effective user of the
// process may own such a file and the folders on its way, and nobody else may write to them. Others may write to a folder on the way only if its
// sticky bit keeps them from renaming what is not theirs, as in /tmp.
package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through, as in Linux.
const maxLinks = 40

// Check returns nil if only the effective user and root can change what the path leads to, or put something else in its place. Otherwise the error
// names the file or folder that others can change, and what to do. Every symbolic link on the way is followed and checked. On a system without the
// owners and modes of Unix, it returns nil.
//
// A folder with the sticky bit is accepted although others may put files into it, so each file in a checked folder must still be checked with
// CheckFile.
func Check(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find the folder of %s: %w", path, err)
	}
	if !hasOwners {
		return nil
	}
	return walk(path, self())
}

// CheckFile is Check for one file or folder, and not for those on its way. info is from Stat or Lstat, and the path is for the error.
func CheckFile(path string, info fs.FileInfo) error {
	if !hasOwners {
		return nil
	}
	return self().judge(path, info)
}

// A user is the user that paths must belong to.
type user struct{ uid, gid uint32 }

// walk checks everything that path leads through. path must be absolute and clean.
func walk(path string, u user) error {
	links := 0
	done, left := "/", strings.Split(path, "/")
	for {
		info, err := os.Lstat(done)
		if err != nil {
			return fmt.Errorf("look at the owner: %w", err)
		}
		if err := u.judge(done, info); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return fmt.Errorf("%s leads through more than %d symbolic links", path, maxLinks)
			}
			target, err := os.Readlink(done)
			if err != nil {
				return fmt.Errorf("follow a link: %w", err)
			}
			done = filepath.Dir(done)
			if filepath.IsAbs(target) {
				done = "/"
			}
			left = append(strings.Split(target, "/"), left...)
		}
		for len(left) > 0 && (left[0] == "" || left[0] == ".") {
			left = left[1:]
		}
		if len(left) == 0 {
			return nil
		}
		// No part of done is a link any more, so Join may replace ".." with the parent.
		done, left = filepath.Join(done, left[0]), left[1:]
	}
}

// judge returns an error if others can change a file or folder, or entries of the folder that are not theirs.
func (u user) judge(path string, info fs.FileInfo) error {
	owner, ok := ownerOf(info)
	if !ok {
		return errors.New("the system doesn't say who owns " + path)
	}
	if owner.uid != u.uid && owner.uid != 0 {
		return fmt.Errorf("%s belongs to user %d, who can change it; this process runs as user %d: chown it to that user or to root",
			path, owner.uid, u.uid)
	}
	mode := info.Mode()
	if mode&fs.ModeSymlink != 0 || mode.IsDir() && mode&fs.ModeSticky != 0 {
		return nil // the mode of a link means nothing
	}
	if mode.Perm()&0o002 != 0 {
		return fmt.Errorf("%s can be changed by every user (its mode is %v): chmod o-w it", path, mode)
	}
	if mode.Perm()&0o020 != 0 && !u.alone(owner.gid) {
		return fmt.Errorf("%s can be changed by group %d (its mode is %v): chmod g-w it", path, owner.gid, mode)
	}
	return nil
}

// alone reports whether a group usually has no other members: root's group, and the one with the user's own number, which many systems make for each
// user. Those systems also let the group write to all files that the user creates.
func (u user) alone(gid uint32) bool { return gid == 0 || gid == u.gid && gid == u.uid }
