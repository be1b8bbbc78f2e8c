package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// ErrStateInUse is returned for the file of a state while a server uses it.
var ErrStateInUse = local.ErrLocked

// ErrNoState is returned if there is nothing to copy.
var ErrNoState = errors.New("nothing has been kept yet: there is no state")

// ErrInNATS is returned if a state file is needed but the state is in NATS.
var ErrInNATS = errors.New("the state is in NATS and not in a file: copy its bucket with `nats backup stream`, and see docs/operations.md")

// WriteTo writes a consistent copy of the state while it is in use.
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
	if s.InNATS() {
		return 0, ErrInNATS
	}
	return 0, ErrNoState
}

// StateFile returns the path of the state file in a directory.
func StateFile(dir string) string { return filepath.Join(dir, local.FileName) }

// OpenStateFile opens a state file that no server uses, such as a backup, and checks all of it, as a server does at its start. The caller closes it.
func OpenStateFile(path string) (*local.File, error) { return local.OpenFile(path, forms()) }

// RestoreState replaces the state in a directory with a copy of a backup. It returns the name under which the previous file was kept, or "" if there
// was none. Nothing changes unless all of the backup is intact and no server uses the state. The audit in the copy says who has restored it.
func RestoreState(ctx context.Context, backup, dir, who string) (kept string, err error) {
	e := audit.Entry{Action: "state.restore", Who: who, Origin: wasmtools.OriginProcess}
	if e.Target, err = filepath.Abs(backup); err != nil {
		return "", err
	}
	if e.After, err = describeFile(backup); err != nil {
		return "", err
	}
	return local.Restore(backup, dir, local.Options{Forms: forms()}, func(s *local.Store) error {
		return audit.New(audit.Options{Space: func() state.Space { return s.Space(audit.Space) }}).Append(ctx, e)
	})
}

// describeFile returns the digest of a file and when it was written, as JSON.
func describeFile(path string) (json.RawMessage, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file: name a backup", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Digest   string    `json:"digest"`
		Modified time.Time `json:"modified"`
	}{hex.EncodeToString(h.Sum(nil)), info.ModTime().UTC()})
}
