package local

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A mapped is the file, which bbolt maps into memory. If somebody truncates the file, or a disk fails, bbolt panics while it holds locks, and
// all others would wait for them forever. So no caller waits for bbolt where it may hang. A read transaction begins under a lock of our own, and
// nobody waits for its end. Writing and closing run in a goroutine that can be abandoned. After such a panic nothing is read or written any
// more.
type mapped struct {
	bolt *bbolt.DB
	file *os.File
	path string
	info os.FileInfo // says which file it is

	beginning sync.Mutex    // held around bbolt's Begin, which leaves a lock locked if it panics
	gone      chan struct{} // closed when the file has been given up
	once      sync.Once
	why       atomic.Pointer[error]

	// Used only by the writer.
	last     int   // the number of the last write transaction; 0 means unknown
	reserved int64 // how far the disk has reserved space for the file
	lacks    int64 // how much space was last needed to set entries
	full     error // why the disk had too little; nil if it had enough
	asked    time.Time
}

// errChanged is returned if another program has removed, replaced or changed the file while it was in use.
var errChanged = errors.New("was changed by another program while it was in use")

// giveUp stops all reading and writing if err shows that the file or bbolt's locks can't be trusted.
func (m *mapped) giveUp(err error) error {
	if !errors.As(err, new(*fault)) && !errors.Is(err, errChanged) && !errors.Is(err, berrors.ErrInvalidMapping) {
		return err
	}
	m.once.Do(func() {
		if changed := m.changed(0); changed != nil {
			err = changed // more specific than err, which the change has caused
		}
		err = fmt.Errorf("%w: it is no longer used: if it is damaged, put a backup in its place, and restart the server", err)
		m.why.Store(&err)
		close(m.gone)
	})
	return m.broken()
}

// broken returns why the file was given up, or nil.
func (m *mapped) broken() error {
	if why := m.why.Load(); why != nil {
		return *why
	}
	return nil
}

// examine gives the file up if it was removed, replaced or truncated. It also gives the file up if it has fewer bytes than least says.
func (m *mapped) examine(least int64) error {
	if err := m.broken(); err != nil {
		return err
	}
	return m.giveUp(m.changed(least))
}

// changed returns an error if the path now names another file, or if the file is shorter than it was. A write to a removed file would be lost when
// the process ends.
func (m *mapped) changed(least int64) error {
	now, err := os.Lstat(m.path)
	switch {
	case err != nil:
		return fmt.Errorf("%s %w: %w", m.path, errChanged, err)
	case !os.SameFile(now, m.info):
		return fmt.Errorf("%s %w: another file has its name", m.path, errChanged)
	case now.Size() < max(least, m.info.Size()): // the file never shrinks by itself
		return fmt.Errorf("%s %w: it is shorter than it was", m.path, errChanged)
	}
	return nil
}

// view calls f with the file as it is now.
func (m *mapped) view(f func(tx *bbolt.Tx) error) error {
	tx, err := m.begin()
	if err != nil {
		return err
	}
	defer m.end(tx)
	return m.giveUp(within(f, tx))
}

// within calls f, and turns a panic into an error.
func within(f func(tx *bbolt.Tx) error, tx *bbolt.Tx) (err error) {
	defer caught(&err, debug.SetPanicOnFault(true))
	return f(tx)
}

// begin begins a read transaction. Callers wait here for a lock of our own. If bbolt panics meanwhile, they get an error, and don't go on to wait
// for a lock of bbolt.
func (m *mapped) begin() (*bbolt.Tx, error) {
	m.beginning.Lock()
	defer m.beginning.Unlock()
	if err := m.broken(); err != nil {
		return nil, err
	}
	tx, err := m.beginOnce()
	return tx, m.giveUp(err)
}

func (m *mapped) beginOnce() (tx *bbolt.Tx, err error) {
	defer caught(&err, debug.SetPanicOnFault(true))
	return m.bolt.Begin(false)
}

// end ends a read transaction. For that it needs a lock of bbolt for a moment. If Begin panics, it leaves that lock locked. So end takes the lock
// only while no goroutine is in Begin, and otherwise leaves it to another goroutine. end must not wait for a goroutine in Begin: that one may
// wait for the writer, which waits for this transaction.
func (m *mapped) end(tx *bbolt.Tx) {
	if !m.beginning.TryLock() {
		go tx.Rollback()
		return
	}
	defer m.beginning.Unlock()
	if m.broken() != nil {
		go tx.Rollback()
		return
	}
	_ = tx.Rollback() // never fails for a read transaction
}

// update runs a write transaction. An error means that it was rolled back, or was not made durable. If the file was given up because of the
// error, f may still be running.
func (m *mapped) update(f func(tx *bbolt.Tx) error) error {
	if err := m.examine(0); err != nil {
		return err
	}
	return m.apart(func() error {
		last := m.last
		m.last = 0
		id := 0
		err := m.bolt.Update(func(tx *bbolt.Tx) error {
			id = tx.ID()
			if last != 0 && id != last+1 {
				return m.giveUp(fmt.Errorf("%s %w: its last transaction is not the last one written", m.path, errChanged))
			}
			if err := m.examine(tx.Size()); err != nil {
				return err
			}
			err := f(tx)
			if err != nil {
				m.last = last // nothing is written
			}
			return err
		})
		switch {
		case err == nil:
			m.last = id
		case errors.Is(err, berrors.ErrMaxSizeReached) && m.full != nil:
			err = m.full
		}
		return err
	})
}

// apart calls f, which uses bbolt, in a goroutine of its own. It returns when f does, or when the file is given up.
func (m *mapped) apart(f func() error) error {
	done := make(chan error, 1)
	go func() {
		done <- func() (err error) {
			defer caught(&err, debug.SetPanicOnFault(true))
			return f()
		}()
	}()
	select {
	case err := <-done:
		return m.giveUp(err)
	case <-m.gone:
		return m.broken()
	}
}

// close closes the file, and waits for all read transactions. A file that was given up stays open and locked until the process ends, for those that
// still use it.
func (m *mapped) close() error {
	if err := m.broken(); err != nil {
		return err
	}
	return m.apart(m.bolt.Close)
}

// Records of at least large bytes are read ahead, readAhead bytes at a time.
const (
	large     = 16 << 10
	readAhead = 64 << 10
)

// warm makes the system read a large record from the disk before it is used as memory. bbolt tells the system not to read ahead. So each page would
// be a page fault that waits for the disk, and a goroutine that copies a record would occupy its processor all that time.
func (m *mapped) warm(record []byte) {
	if len(record) < large {
		return
	}
	offset := int64(reflect.ValueOf(record).Pointer() - m.bolt.Info().Data)
	part := make([]byte, readAhead)
	for done := 0; done < len(record); done += readAhead {
		// If it can't be read now, its use will report that.
		if _, err := m.file.ReadAt(part[:min(readAhead, len(record)-done)], offset+int64(done)); err != nil {
			return
		}
	}
}

// openBolt opens a file with bbolt, which panics on some kinds of damage. The file is locked for this process alone, unless it is only read.
func openBolt(path string, readOnly bool) (m *mapped, err error) {
	var db *bbolt.DB
	var file *os.File
	defer func() {
		if err != nil && file != nil {
			file.Close() // bbolt has closed it, unless it panicked
		}
	}()
	defer caught(&err, debug.SetPanicOnFault(true))
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         lockTime,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true,
		ReadOnly:        readOnly,
		PreLoadFreelist: true, // done here, where a panic is caught
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			file = f
			return f, err
		},
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w (%w)", ErrForeign, err)
	case errors.Is(err, berrors.ErrChecksum), err != nil && strings.Contains(err.Error(), "file size too small"):
		return nil, fmt.Errorf("%w (%w)", ErrDamaged, err)
	case err != nil:
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &mapped{bolt: db, file: file, path: path, info: info, gone: make(chan struct{})}, nil
}
