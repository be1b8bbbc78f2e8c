package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/internal/ownership"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

// FileName is the name of the file in the directory of a state.
const FileName = "state.db"

const (
	tempPrefix = ".state-"
	// format is the version of the file's format.
	format = "1"
	// lockTime is how long Open waits for another process. It is so short that bbolt tries once.
	lockTime = time.Millisecond
)

// The buckets of the file: one that identifies it, one with the tally of each space by its name, and two for each space.
var (
	formatName  = []byte("toolsrv")
	formatKey   = []byte("format")
	talliesName = []byte("tallies")
)

const (
	valuesPrefix = "values/"
	duePrefix    = "due/"
)

func valuesOf(space string) []byte { return []byte(valuesPrefix + space) }
func dueOf(space string) []byte    { return []byte(duePrefix + space) }

// MakeDirectory makes the directory of a state, for this user alone, if it is missing, and refuses one that others can change.
func MakeDirectory(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return explain(dir, err)
	}
	if err := ownership.Check(dir); err != nil {
		return fmt.Errorf("anyone who can change the state can change what tools know: %w; or name a folder inside it, which will be made private", err)
	}
	return nil
}

// openFile opens the file in a directory, and checks all of it. It makes the file or the directory if missing. due is the value for Store.due.
func openFile(dir string, forms map[string]byte) (db *mapped, due map[string]int64, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	if err := MakeDirectory(dir); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, FileName)
	if err := makeFile(path); err != nil {
		return nil, nil, explain(path, err)
	}
	if db, err = openBolt(path, false); err != nil {
		return nil, nil, explain(path, err)
	}
	if due, err = inspect(db, forms); err != nil {
		return nil, nil, errors.Join(explain(path, err), db.close())
	}
	removeTemps(dir)
	return db, due, nil
}

// removeTemps removes the temporary files of processes that were killed while they made the file. A process that is just making the file no
// longer needs its own, since the file exists now.
func removeTemps(dir string) {
	files, _ := os.ReadDir(dir) // an error does not matter: these files only clutter the directory
	for _, f := range files {
		if strings.HasPrefix(f.Name(), tempPrefix) {
			_ = os.RemoveAll(filepath.Join(dir, f.Name()))
		}
	}
}

// explain returns an error about a file, and says what to do about it.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("%s is %w by another process: stop that one, or name another directory under [state]", path, err)
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%s is %w: put a backup in its place, or move it away to start with an empty state", path, err)
	case errors.Is(err, ErrForeign):
		return fmt.Errorf("%s is %w: name another directory under [state], or run the version that wrote it", path, err)
	}
	return fmt.Errorf("%s: %w: name a directory under [state] that this user can write to", path, err)
}

// makeFile makes the file if there is none. No process ever sees it half made. It refuses an existing file that others can change.
func makeFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil:
		if err := checkKind(info); err != nil {
			return err
		}
		return ownership.CheckFile(path, info)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return err
	}
	db, err := openBolt(temp.Name(), false)
	if err != nil {
		return err
	}
	err = db.bolt.Update(func(tx *bbolt.Tx) error {
		about, err := tx.CreateBucket(formatName)
		if err != nil {
			return err
		}
		_, err = tx.CreateBucket(talliesName)
		return errors.Join(err, about.Put(formatKey, []byte(format)))
	})
	if err := errors.Join(err, db.close()); err != nil {
		return err
	}
	// Unlike a rename, a link never replaces a file that another process has made meanwhile.
	if err := os.Link(temp.Name(), path); err != nil {
		if _, there := os.Lstat(path); there != nil {
			return err
		}
	}
	return wholefile.SyncFolder(filepath.Dir(path))
}

// checkKind returns an error if a file can't be one that this package has written.
func checkKind(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w (it is not a regular file)", ErrForeign)
	case info.Size() == 0: // bbolt would initialize it, as if nothing had ever been kept
		return fmt.Errorf("%w (it is empty)", ErrDamaged)
	}
	return nil
}

// inspect checks all of a file, and returns when the first entry of each space expires.
func inspect(db *mapped, forms map[string]byte) (due map[string]int64, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		due, err = inspectAll(db, tx, forms)
		return err
	})
	return due, err
}

func inspectAll(db *mapped, tx *bbolt.Tx, forms map[string]byte) (due map[string]int64, err error) {
	if has, needs := db.info.Size(), tx.Size(); has < needs {
		return nil, fmt.Errorf("%w (it was cut off: it has %d bytes of %d)", ErrDamaged, has, needs)
	}
	about := tx.Bucket(formatName)
	if about == nil {
		return nil, fmt.Errorf("%w: it is the file of another program", ErrForeign)
	}
	if found := string(about.Get(formatKey)); found != format {
		return nil, fmt.Errorf("%w: it was %w: its format is %s, but this version reads %s", ErrForeign, state.ErrNewer, strconv.Quote(found), format)
	}
	due = map[string]int64{}
	if err := tx.Bucket(talliesName).ForEach(func(name, tally []byte) error {
		first, err := inspectSpace(db, tx, string(name), tally, forms[string(name)])
		if first != 0 {
			due[string(name)] = first
		}
		return err
	}); err != nil {
		return nil, err
	}
	// By now every page in use has been read. So Check, which would not survive a missing page, will not meet one.
	for found := range tx.Check() {
		err = fmt.Errorf("%w: %w", ErrDamaged, found) // no break: the channel must be read to its end
	}
	return due, err
}

// inspectSpace checks a space. Its values may have forms up to form, or any content if form is 0. It returns when the first entry of the space
// expires; 0 means none does.
func inspectSpace(db *mapped, tx *bbolt.Tx, name string, tally []byte, form byte) (first int64, err error) {
	want, err := decodeTally(tally)
	if err != nil {
		return 0, err
	}
	values, index := tx.Bucket(valuesOf(name)), tx.Bucket(dueOf(name))
	var got state.Usage
	expiring, indexed := 0, 0
	if err := values.ForEach(func(key, record []byte) error {
		db.warm(record)
		if err := check(record, string(key)); err != nil {
			return err
		}
		if expiryOf(record) != 0 {
			expiring++
		}
		if form != 0 {
			if err := checkForm(record[recordLen:], form); err != nil {
				return fmt.Errorf("%w (%.60q of %s)", err, key, name)
			}
		}
		got.Entries++
		got.Bytes += state.SizeOf(string(key), record[recordLen:])
		if version := versionOf(record); version == 0 || version > want.version {
			return fmt.Errorf("%w: %.60q has version %d, but the last version of its space is %d", ErrDamaged, key, version, want.version)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	if err := index.ForEach(func(k, _ []byte) error {
		if indexed++; indexed == 1 {
			first = dueTime(k)
		}
		if record := values.Get(k[dueLen:]); record == nil || expiryOf(record) != dueTime(k) {
			return fmt.Errorf("%w: the index of expiring entries has %.60q at a time when it does not expire", ErrDamaged, k[dueLen:])
		}
		return nil
	}); err != nil {
		return 0, err
	}
	if got != want.Usage || expiring != indexed {
		return 0, fmt.Errorf("%w: a space holds %v, %d of it expiring, but its tally says %v and %d", ErrDamaged, got, expiring, want.Usage, indexed)
	}
	return first, nil
}

// checkForm returns an error if a value has no form, or one that this program does not know.
func checkForm(value []byte, form byte) error {
	err := state.CheckForm(value, form)
	switch {
	case errors.Is(err, state.ErrNewer):
		return fmt.Errorf("%w: a record was %w", ErrForeign, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
