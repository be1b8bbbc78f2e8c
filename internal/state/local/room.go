package local

import (
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Room is kept on the disk for deleting, which writes neighbouring pages anew, so that deleting helps on a full disk: as much as the
// file holds, and maxSpare at most. That is enough for the largest entries. It lies at the end of the file.
const (
	maxSpare = 16 << 20
	// slack is what a transaction writes beside the entries, and roomStep how much more room is made at once at most.
	slack    = 64 << 10
	roomStep = 4 << 20
)

// makeRoom makes a batch that sets entries leave the kept room alone, or fit into free pages of the file. One that only deletes
// may use that room.
func (m *mapped) makeRoom(tx *bbolt.Tx, b *batch) {
	m.bolt.MaxSize = 0
	if !b.sets {
		return
	}
	m.lacks = 2*int64(b.rewrites) + slack
	if m.full = m.keepRoom(tx.Size()); m.full != nil {
		m.bolt.MaxSize = 1 // bbolt looks at it where the file has to grow
	}
}

// keepRoom reserves room on the disk: as much as the last batch needed, and some for deleting. size is how much of the file
// is in use.
func (m *mapped) keepRoom(size int64) error {
	need := size + m.lacks + min(size, maxSpare)
	if m.reserved >= need {
		return nil
	}
	if m.full != nil && time.Since(m.asked) < refusedFor {
		return m.full // file systems may look long for room
	}
	m.asked = time.Now()
	from := max(size, m.reserved)
	for _, to := range []int64{need + min(need/4, roomStep), need} {
		err := allocate(m.file, from, to-from)
		if err == nil {
			m.reserved = to
			return nil
		}
		if to == need {
			return fmt.Errorf("the disk has room only for deleting: %w", err)
		}
	}
	return nil
}

// stillFull reports whether the disk had no room for what was to be set last, and has none now. Nothing is being written meanwhile.
func (m *mapped) stillFull() bool {
	if m.broken() != nil {
		return true // and what is below may still be written
	}
	if m.full != nil {
		if err := m.view(func(tx *bbolt.Tx) error {
			m.full = m.keepRoom(tx.Size())
			return nil
		}); err != nil {
			return true
		}
	}
	return m.full != nil
}

// fillZeros makes room for a part of a file, which nobody uses, by writing it.
func fillZeros(file *os.File, from, length int64) error {
	zeros := make([]byte, min(length, 256<<10))
	for to := from + length; from < to; {
		n, err := file.WriteAt(zeros[:min(int64(len(zeros)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}
