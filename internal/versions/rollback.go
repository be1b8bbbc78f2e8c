package versions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

const (
	// Space is the name of the space with the rollbacks.
	Space = "rollbacks"
	// Form is the format of its record.
	Form byte = 1
	// record is the key of the only record.
	record = "all"
)

// A Rollback makes the server serve an earlier version of a file, for as long as the file's source has the same content as when the rollback was
// made.
type Rollback struct {
	File
	// Over is the digest of the source's file, and Digest the digest of the version that is served.
	Over   string `json:"over"`
	Digest string `json:"digest"`
	// Kept is the name of that version in the folder. Roll sets it.
	Kept string `json:"kept"`
	// By is who rolled back, and Since is when. Reason is why, if a reason was given.
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
}

// read reads the rollbacks.
func (s *Store) read(ctx context.Context) error {
	entry, ok, err := s.options.Space.Get(ctx, record, state.MaxValue)
	if err != nil {
		return err
	}
	var list []Rollback
	if ok {
		if err := state.Decode(entry.Value, Form, &list); err != nil {
			return err
		}
	}
	all := map[File]Rollback{}
	for _, r := range list {
		if _, v, ok := parse(r.Kept); !ok || v.Digest != r.Digest {
			return fmt.Errorf("the rollback of %q names %q, which is not a version that is kept", r.Name, r.Kept)
		}
		all[r.File] = r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rollbacks, s.version = all, entry.Version
	return nil
}

// RolledBack returns the rollback of a file, if there is one.
func (s *Store) RolledBack(f File) (r Rollback, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok = s.rollbacks[f]
	return r, ok
}

// Roll rolls a file back to an earlier version. The rollback is durable when Roll returns; whoever serves the file has to read it again.
func (s *Store) Roll(ctx context.Context, r Rollback) error {
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.look(); err != nil {
		return err
	}
	s.mu.Lock()
	v := s.find(r.File, r.Digest)
	s.mu.Unlock()
	if v == nil {
		return fmt.Errorf("the version %s of %s %w", text.ShortDigest(r.Digest), r.Name, ErrUnknown)
	}
	r.Kept = v.name
	if err := s.sync(v.name); err != nil {
		return fmt.Errorf("keep the version %s of %s: %w", text.ShortDigest(r.Digest), r.Name, err)
	}
	return s.set(ctx, func(all map[File]Rollback) { all[r.File] = r })
}

// sync makes a version survive a loss of power.
func (s *Store) sync(name string) error {
	file, err := os.OpenFile(filepath.Join(s.path, name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close(), wholefile.SyncFolder(s.path))
}

// Unroll ends the rollback of a file, so that its source's content is served again. It reports whether there was a rollback.
func (s *Store) Unroll(ctx context.Context, f File) (bool, error) {
	s.change.Lock()
	defer s.change.Unlock()
	r, ok := s.RolledBack(f)
	if !ok {
		return false, nil
	}
	return true, s.end(ctx, r)
}

// end ends a rollback. The version that was served becomes the newest version of the file, so that the next rollback goes back to it, and not to the
// content that it replaced. s.change is held.
func (s *Store) end(ctx context.Context, r Rollback) error {
	if err := s.set(ctx, func(all map[File]Rollback) { delete(all, r.File) }); err != nil {
		return err
	}
	err := s.look()
	if err == nil && !s.Has(r.File, r.Digest) {
		_, err = s.renew(r.File, r.Digest)
	}
	if err != nil { // the version then keeps its old place among the versions
		s.options.Logger.Warn("the version that a file was rolled back to could not be recorded as the last one", "file", r.Name, "error", err)
	}
	return nil
}

// set changes the rollbacks. s.change is held.
func (s *Store) set(ctx context.Context, change func(map[File]Rollback)) error {
	if s.options.Space == nil {
		return ErrOff
	}
	s.mu.Lock()
	next, version := maps.Clone(s.rollbacks), s.version
	s.mu.Unlock()
	change(next)
	list := slices.SortedFunc(maps.Values(next), func(a, b Rollback) int {
		return strings.Compare(a.Source+"\x00"+a.Name, b.Source+"\x00"+b.Name)
	})
	value, err := state.Encode(Form, list)
	if err != nil {
		return err
	}
	if len(value) > state.MaxValue {
		return fmt.Errorf("too many files are rolled back: %w", state.ErrTooLarge)
	}
	version, err = s.options.Space.Set(ctx, record, value, int64(version), state.SetOptions{})
	if errors.Is(err, state.ErrConflict) { // another process uses the same state, or it could not be read at the start
		if again := s.read(ctx); again != nil {
			return again
		}
		return errors.New("somebody else has just rolled back a file: look at it, and try again")
	}
	if err != nil {
		return fmt.Errorf("store the rollback: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rollbacks, s.version = next, version
	return nil
}

// Instead returns what to serve in place of the content of a file: an earlier version if the file was rolled back from exactly that content, and
// otherwise the content itself. If the source has other content by now, the rollback ends.
func (s *Store) Instead(ctx context.Context, source, name string, content []byte) ([]byte, error) {
	f := File{source, name}
	r, ok := s.RolledBack(f)
	if !ok {
		return content, nil
	}
	sum := sha256.Sum256(content)
	if hex.EncodeToString(sum[:]) == r.Over {
		return s.content(f, r.Kept, r.Digest)
	}
	s.change.Lock()
	defer s.change.Unlock()
	if now, ok := s.RolledBack(f); !ok || now != r {
		return content, nil // somebody has just changed the rollback, and will have the file read again
	}
	s.options.Logger.Info("a file that was rolled back has changed: the new version is served", "file", name)
	if err := s.end(ctx, r); err != nil {
		s.options.Logger.Error("a rollback is over, but the state can't be written", "file", name, "error", err)
		s.mu.Lock()
		delete(s.rollbacks, f)
		s.mu.Unlock()
	}
	return content, nil
}
