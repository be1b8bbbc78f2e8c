package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

// A Content is what a space holds.
type Content struct {
	Space string
	state.Usage
}

// A File is a state's file that is only read, such as a backup. No process may change it meanwhile.
type File struct {
	// Size is the size of a copy in bytes. Contents says what each space holds, by its name.
	Size     int64
	Contents []Content

	db *mapped
}

// OpenFile opens a file and checks all of it, as Open does. forms is [Options.Forms]. If a server uses the file, the error wraps ErrLocked. The
// caller closes the File.
func OpenFile(path string, forms map[string]byte) (*File, error) {
	f := &File{}
	if err := f.open(path, forms); err != nil {
		return nil, about(path, err)
	}
	return f, nil
}

// about says what is wrong with a file.
func about(path string, err error) error {
	switch {
	case errors.Is(err, state.ErrNewer):
		return fmt.Errorf("%s is %w: run the version that wrote it, or a newer one", path, err)
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrForeign):
		return fmt.Errorf("%s is %w", path, err)
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("%s is %w by another process, such as a server", path, err)
	case strings.Contains(err.Error(), path):
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (f *File) open(path string, forms map[string]byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := checkKind(info); err != nil {
		return err
	}
	if f.db, err = openBolt(path, true); err != nil {
		return err
	}
	if _, err = inspect(f.db, forms); err == nil {
		err = f.db.view(f.count)
	}
	if err != nil {
		return errors.Join(err, f.db.close())
	}
	return nil
}

// count records what the spaces hold.
func (f *File) count(tx *bbolt.Tx) error {
	f.Size = tx.Size()
	return tx.Bucket(talliesName).ForEach(func(name, tally []byte) error {
		t, err := decodeTally(tally)
		f.Contents = append(f.Contents, Content{string(name), t.Usage})
		return err
	})
}

// WriteTo writes a copy of the file.
func (f *File) WriteTo(w io.Writer) (n int64, err error) { return f.db.copyTo(w) }

// Close closes the file.
func (f *File) Close() error { return f.db.close() }

// WriteTo writes a copy of the state as it is at one moment, while others go on using it. Until it returns, their changes take additional space in
// the file, so w must not block for long. Close waits for it.
func (s *Store) WriteTo(w io.Writer) (n int64, err error) {
	n, err = s.db.copyTo(w)
	if err != nil {
		return n, fmt.Errorf("copy the state: %w", err)
	}
	return n, nil
}

func (m *mapped) copyTo(w io.Writer) (n int64, err error) {
	err = m.view(func(tx *bbolt.Tx) error {
		if err := m.examine(tx.Size()); err != nil {
			return err
		}
		n, err = tx.WriteTo(w)
		return err
	})
	return n, err
}

// Restore checks all of a backup, and then puts a copy of it in place of the state in a directory. The previous file is kept beside it, under the
// name that is returned, or "" if there was none. If a server uses either file, the error wraps ErrLocked. note may write into the copy before it
// is put in place; if note fails, nothing is restored. note may be nil.
func Restore(backup, dir string, o Options, note func(*Store) error) (kept string, err error) {
	from, err := OpenFile(backup, o.Forms)
	if err != nil {
		return "", err
	}
	defer from.Close()
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := MakeDirectory(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, FileName)
	if os.SameFile(from.db.info, statOf(path)) {
		return "", fmt.Errorf("%s is the state itself: name a backup", backup)
	}
	temp, err := from.copyInto(dir)
	if err != nil {
		return "", about(path, err)
	}
	defer os.RemoveAll(temp)
	if note != nil {
		if err := noted(temp, o, note); err != nil {
			return "", about(path, err)
		}
	}
	if kept, err = setAside(path); err != nil {
		return "", about(path, err)
	}
	// A server that starts at this moment has opened the old file, and finds that its name now belongs to another one.
	if err := errors.Join(os.Rename(filepath.Join(temp, FileName), path), wholefile.SyncFolder(dir)); err != nil {
		return "", about(path, err)
	}
	return kept, nil
}

// statOf returns the file information of a path, or nil.
func statOf(path string) fs.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// copyInto makes a temporary folder in a directory, with a copy of the file. The next process removes the folder by its name if this one ends early.
func (f *File) copyInto(dir string) (folder string, err error) {
	if folder, err = os.MkdirTemp(dir, tempPrefix); err != nil {
		return "", err
	}
	copied, err := os.OpenFile(filepath.Join(folder, FileName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		if _, err = f.WriteTo(copied); err == nil {
			err = copied.Sync()
		}
		err = errors.Join(err, copied.Close())
	}
	if err != nil {
		_ = os.RemoveAll(folder)
		return "", err
	}
	return folder, nil
}

// noted calls note with the state in a folder.
func noted(folder string, o Options, note func(*Store) error) error {
	s, err := Open(folder, o)
	if err != nil {
		return err
	}
	return errors.Join(note(s), s.Close())
}

// setAside gives the state's file, which no process uses, a second name, so that another file can be given its first one.
func setAside(path string) (kept string, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%w (it is not a regular file)", ErrForeign)
	}
	if info.Size() > 0 { // bbolt would initialize an empty file
		db, err := openBolt(path, false)
		switch {
		case err == nil:
			defer db.close()
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign): // a damaged or foreign file is why somebody restores
			return "", err
		}
	}
	base := path + "." + time.Now().UTC().Format("20060102T150405Z")
	for n := 1; ; n++ {
		if kept = base; n > 1 {
			kept = fmt.Sprintf("%s-%d", base, n)
		}
		if err := os.Link(path, kept); !errors.Is(err, fs.ErrExist) {
			return kept, err
		}
	}
}
