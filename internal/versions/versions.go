// Package versions keeps the last versions of files in a folder, and remembers which version is served in place of the content in a file's source.
//
// The name of a version says everything: when it was stored, its digest, and the file that it belongs to. So there is no index that could be wrong,
// and what is read is compared with its digest. A version that is rolled back to survives a loss of power; any other version that is damaged is
// refused.
package versions

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// PerFile is how many versions of a file are kept.
	PerFile = 5
	// MaxSize is the size of the largest file that is kept, in bytes, which is also the largest size of a module.
	MaxSize = 64 << 20
	// block is the least that a version counts for, in bytes: the room that file systems use for a small file.
	block = 4 << 10
	// folder is the folder's name in the directory of the state.
	folder = "versions"
)

// ErrFull is returned for a version for which there is no room.
var ErrFull = errors.New("there is no room for more versions of files: raise state.versions")

// ErrOff is returned where no versions are kept.
var ErrOff = errors.New("no versions of files are kept: the configuration names no state.directory (a state in NATS can't keep versions yet), or state.versions is 0")

// ErrUnknown is returned for a version that is not kept.
var ErrUnknown = errors.New("is not kept")

// ErrDamaged is returned for a version whose content no longer matches its digest.
var ErrDamaged = errors.New("is damaged, and can't be used")

// ErrChanged is returned for a content that does not match the given digest.
var ErrChanged = errors.New("it has changed in the meantime")

// A File identifies a file by its source's ID and its name there.
type File struct {
	Source string `json:"source"`
	Name   string `json:"name"`
}

// A Version is a stored version.
type Version struct {
	// Digest is the SHA-256 of the content in lower-case hexadecimal, and Size the number of bytes.
	Digest string
	Size   int64
	// Since is when it was last stored: shortly after it began to be served, or was served again.
	Since time.Time

	name string // the version's name in the folder
}

// Options say where versions are stored, and how many.
type Options struct {
	// Directory is the state's directory; if empty, no versions are kept. MakeDirectory makes it if it is missing.
	Directory     string
	MakeDirectory func(dir string) error
	// Space is where rollbacks are stored, or nil.
	Space state.Space
	// Bytes returns how much all versions may take together; 0 keeps none.
	Bytes func() int64
	// Logger is the log. It may be nil.
	Logger *slog.Logger
}

// A Store keeps versions. It is safe for concurrent use.
type Store struct {
	options Options
	path    string // the path of the folder

	change sync.Mutex // held while the folder, or the rollbacks in the state, are changed
	mu     sync.Mutex // guards what follows
	looked bool       // the folder has been read
	kept   map[place][]Version
	bytes  int64
	live   map[place]bool // the files that exist; nil if they are not known

	rollbacks map[File]Rollback
	version   uint64 // the version of the record of the rollbacks
}

// Open returns the store, with its rollbacks. An error says why the rollbacks can't be read; the Store can be used all the same, but has none. The
// folder is read when it is first needed.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o, path: filepath.Join(o.Directory, folder), kept: map[place][]Version{}, rollbacks: map[File]Rollback{}}
	if o.Space == nil {
		return s, nil
	}
	if err := s.read(ctx); err != nil {
		return s, fmt.Errorf("read which files were rolled back: %w", err)
	}
	return s, nil
}

// IsOn reports whether versions are kept.
func (s *Store) IsOn() bool { return s.options.Directory != "" && s.options.Bytes() > 0 }

// Bytes returns how much all versions may take together.
func (s *Store) Bytes() int64 { return s.options.Bytes() }

// Look reads the folder if it has not been read yet.
func (s *Store) Look() error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.look()
}

// look reads the folder, once. s.change is held.
func (s *Store) look() error {
	if s.options.Directory == "" {
		return ErrOff
	}
	s.mu.Lock()
	looked := s.looked
	s.mu.Unlock()
	if looked {
		return nil
	}
	entries, err := os.ReadDir(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the versions of files: %w", err)
	}
	kept, total := map[place][]Version{}, int64(0)
	for _, e := range entries {
		at, v, ok := parse(e.Name())
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
			continue
		case !ok: // another program's file, or an incomplete copy
			if isTemporary(e.Name()) {
				_ = os.Remove(filepath.Join(s.path, e.Name()))
			}
			continue
		}
		v.Size = info.Size()
		if slices.ContainsFunc(kept[at], func(other Version) bool { return other.Digest == v.Digest }) { // two processes have stored it
			_ = os.Remove(filepath.Join(s.path, e.Name()))
			continue
		}
		kept[at] = append(kept[at], v)
		total += counted(v.Size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked, s.kept, s.bytes = true, kept, total
	return nil
}

func counted(size int64) int64 { return max(size, block) }

// Has reports whether a version of a file is stored as the newest one, as far as that is known. A version that the file was rolled back to need not
// be the newest.
func (s *Store) Has(f File, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.find(f, digest)
	if v == nil {
		return false
	}
	if r, back := s.rollbacks[f]; back && r.Digest == digest {
		return true
	}
	return v.name == newest(s.kept[placeOf(f)]).name
}

func newest(all []Version) Version {
	return slices.MaxFunc(all, func(a, b Version) int { return a.Since.Compare(b.Since) })
}

// find returns a stored version, or nil. s.mu is held.
func (s *Store) find(f File, digest string) *Version {
	all := s.kept[placeOf(f)]
	if i := slices.IndexFunc(all, func(v Version) bool { return v.Digest == digest }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Of returns the versions of a file, the last stored one first.
func (s *Store) Of(f File) ([]Version, error) {
	err := s.Look()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.kept[placeOf(f)])
	slices.SortStableFunc(all, func(a, b Version) int { return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.name, b.name)) })
	return all, err
}

// Files returns the names of the source's files that have versions, sorted, without those whose names are too long for the folder.
func (s *Store) Files(source string) (all []File, err error) {
	err = s.Look()
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.kept {
		if name, ok := at.fileIn(source); ok {
			all = append(all, File{source, name})
		}
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// Keep stores a version of a file as the newest one. A version that is stored already becomes the newest again. If content does not match the digest,
// it returns an error and stores nothing.
func (s *Store) Keep(f File, digest string, size int64, content io.Reader) error {
	if !s.IsOn() {
		return ErrOff
	}
	if size < 0 || size > MaxSize {
		return fmt.Errorf("has %d bytes; no versions are kept of files with more than %d", size, MaxSize)
	}
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.look(); err != nil {
		return err
	}
	at := placeOf(f)
	if s.Has(f, digest) {
		return nil
	}
	if again, err := s.renew(f, digest); again || err != nil {
		return err
	}
	if err := s.make(); err != nil {
		return err
	}
	if err := s.makeRoom(at, counted(size)); err != nil {
		return err
	}
	v := Version{Digest: digest, Size: size, Since: s.next(at)}
	v.name = nameOf(at, v)
	if err := s.write(v, content); err != nil {
		return fmt.Errorf("keep a version of %s: %w", f.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[at] = append(s.kept[at], v)
	s.bytes += counted(size)
	return nil
}

// renew makes a stored version the newest of its file. It returns false if the version is missing or damaged. s.change is held.
func (s *Store) renew(f File, digest string) (bool, error) {
	at := placeOf(f)
	s.mu.Lock()
	found := s.find(f, digest)
	if found == nil {
		s.mu.Unlock()
		return false, nil
	}
	old := *found
	s.mu.Unlock()
	if _, err := s.content(f, old.name, digest); errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnknown) {
		return false, s.remove(spare{at, old})
	}
	now := old
	now.Since = s.next(at)
	now.name = nameOf(at, now)
	if err := os.Rename(filepath.Join(s.path, old.name), filepath.Join(s.path, now.name)); err != nil {
		return false, fmt.Errorf("keep a version of %s: %w", f.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.find(f, digest) = now
	return true, nil
}

// next returns the time for the newest version of a file, which is after the times of all its versions, even if the clock was put back.
func (s *Store) next(at place) time.Time {
	now := time.Now().UTC().Truncate(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.kept[at]; len(all) > 0 {
		if last := newest(all).Since; !now.After(last) {
			now = last.Add(time.Millisecond)
		}
	}
	return now
}

// make makes the folder if it is missing.
func (s *Store) make() error {
	if _, err := os.Lstat(s.path); err == nil {
		return nil
	}
	if err := s.options.MakeDirectory(s.options.Directory); err != nil {
		return err
	}
	if err := os.Mkdir(s.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// write writes a version, which is not visible before it is complete.
func (s *Store) write(v Version, content io.Reader) error {
	temp := filepath.Join(s.path, temporaryOf(v.name))
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, h), io.LimitReader(content, v.Size+1))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil && (n != v.Size || hex.EncodeToString(h.Sum(nil)) != v.Digest) {
		err = ErrChanged
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(s.path, v.name))
	}
	if err != nil {
		_ = os.Remove(temp) // there may be no such file
	}
	return err
}

// makeRoom removes old versions until there is room for one more of a file. s.change is held.
func (s *Store) makeRoom(at place, size int64) error {
	for {
		s.mu.Lock()
		full := s.bytes+size > s.options.Bytes()
		many := len(s.kept[at]) >= PerFile
		if !full && !many {
			s.mu.Unlock()
			return nil
		}
		old := s.oldest(at, many)
		s.mu.Unlock()
		if old == nil {
			return ErrFull
		}
		if err := s.remove(*old); err != nil {
			return err
		}
	}
}

// A spare is a version that can be removed.
type spare struct {
	place
	Version
}

// oldest returns the version to remove first, of one file or of all. It is neither a version that was rolled back to, nor the newest one of a file
// that exists. s.mu is held.
func (s *Store) oldest(of place, alone bool) (old *spare) {
	used := map[string]bool{}
	for _, r := range s.rollbacks {
		used[r.Kept] = true
	}
	among := s.kept
	if alone {
		among = map[place][]Version{of: s.kept[of]}
	}
	for at, all := range among {
		last := newest(all)
		isLive := s.live == nil || s.live[at]
		for _, v := range all {
			if used[v.name] || isLive && v.name == last.name || old != nil && !v.Since.Before(old.Since) {
				continue
			}
			old = &spare{at, v}
		}
	}
	return old
}

// remove removes a version. s.change is held.
func (s *Store) remove(old spare) error {
	if err := os.Remove(filepath.Join(s.path, old.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= counted(old.Size)
	s.kept[old.place] = slices.DeleteFunc(s.kept[old.place], func(v Version) bool { return v.name == old.name })
	if len(s.kept[old.place]) == 0 {
		delete(s.kept, old.place)
	}
	return nil
}

// SetLive says which files exist: even the last version of any other file is removed if there is no room.
func (s *Store) SetLive(files []File) {
	live := make(map[place]bool, len(files))
	for _, f := range files {
		live[placeOf(f)] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = live
}

// Read returns the content of a version of a file, compared with its digest.
func (s *Store) Read(f File, digest string) ([]byte, error) {
	err := s.Look()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	v := s.find(f, digest)
	s.mu.Unlock()
	if v == nil {
		return nil, fmt.Errorf("the version %s of %s %w", text.ShortDigest(digest), f.Name, ErrUnknown)
	}
	return s.content(f, v.name, digest)
}

// content returns the content of the version with a name.
func (s *Store) content(f File, name, digest string) ([]byte, error) {
	file, err := os.Open(filepath.Join(s.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the version %s of %s %w", text.ShortDigest(digest), f.Name, ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var b bytes.Buffer
	if info, err := file.Stat(); err == nil {
		b.Grow(int(min(max(info.Size(), 0), MaxSize)) + bytes.MinRead)
	}
	if _, err := io.Copy(&b, io.LimitReader(file, MaxSize+1)); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b.Bytes()); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("the version %s of %s %w", text.ShortDigest(digest), f.Name, ErrDamaged)
	}
	return b.Bytes(), nil
}
