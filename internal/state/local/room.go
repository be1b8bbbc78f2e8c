package local

import (
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Deletions need free space on the disk too, since they rewrite neighbouring pages. So space is reserved at the end of the file: as much as the
// file holds, but at most maxSpare, which is enough for the largest entries. With it, entries can be deleted even if the disk is full.
const (
	maxSpare = 16 << 20
	// slack is what a transaction writes in addition to the entries. roomStep is the most that is reserved beyond what is needed.
	slack    = 64 << 10
	roomStep = 4 << 20
)

// makeRoom makes sure that a batch that sets entries leaves the reserved space alone, unless it fits into free pages of the file. A batch that only
// deletes may use the reserved space.
func (m *mapped) makeRoom(tx *bbolt.Tx, b *batch) {
	m.bolt.MaxSize = 0
	if !b.sets {
		return
	}
	m.lacks = 2*int64(b.rewrites) + slack
	if m.full = m.keepRoom(tx.Size()); m.full != nil {
		m.bolt.MaxSize = 1 // bbolt checks it when the file has to grow
	}
}

// keepRoom reserves space on the disk: as much as the last batch needed, and some for deletions. size is how much of the file is in use.
func (m *mapped) keepRoom(size int64) error {
	need := size + m.lacks + min(size, maxSpare)
	if m.reserved >= need {
		return nil
	}
	if m.full != nil && time.Since(m.asked) < refusedFor {
		return m.full // a file system may take long to find space
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

// stillFull reports whether the last batch that set entries found too little space on the disk, and the disk still has too little. It must be
// called only while nothing is being written.
func (m *mapped) stillFull() bool {
	if m.broken() != nil {
		return true // an abandoned write may still use the fields below
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

// fillZeros reserves space for an unused part of a file by writing zeros.
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
