package core

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/state/local"
)

// ErrStateInUse is returned for the file of a state that a server uses.
var ErrStateInUse = local.ErrLocked

// ErrNoState is returned where there is nothing to copy.
var ErrNoState = errors.New("nothing was kept yet: there is no state")

// WriteTo writes a copy of the state as it is at one moment, while others use it.
func (s *State) WriteTo(w io.Writer) (int64, error) {
	store := s.Store()
	if d, ok := store.(*local.Deferred); ok {
		if err := d.Broken(); err != nil {
			return 0, err
		}
		if opened := d.Opened(); opened != nil {
			return opened.WriteTo(w)
		}
		return 0, ErrNoState
	}
	if on, ok := store.(*local.Store); ok {
		return on.WriteTo(w)
	}
	return 0, ErrNoState
}

// StateFile returns where the state of a directory is.
func StateFile(dir string) string { return filepath.Join(dir, local.FileName) }

// OpenStateFile opens the file of a state that no server uses, such as a backup, and checks all of it, as a server does when it starts. The
// caller closes it.
func OpenStateFile(path string) (*local.File, error) { return local.OpenFile(path, forms()) }

// RestoreState puts a copy of a backup into the place of the state in a directory, and returns the name of the file that was there before, "" for
// none. Nothing changes unless all of the backup is in order, and no server uses the state.
func RestoreState(backup, dir string) (kept string, err error) {
	return local.Restore(backup, dir, forms())
}
