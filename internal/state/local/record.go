package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A record is an entry as the file stores it: its version, the time when it expires in Unix milliseconds (0: never), a checksum, and the value. The
// checksum is the CRC-32C of the key and the rest of the record. It reveals what a disk has changed, which bbolt doesn't check.
const (
	expiresAt = 8
	sumAt     = 16
	recordLen = 20 // without the value
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newRecord returns a record whose version and checksum are still missing.
func newRecord(value []byte, expires int64) []byte {
	record := make([]byte, recordLen, recordLen+len(value))
	binary.LittleEndian.PutUint64(record[expiresAt:], uint64(expires))
	return append(record, value...)
}

// seal sets a record's version and checksum.
func seal(record []byte, key string, version uint64) {
	binary.LittleEndian.PutUint64(record, version)
	binary.LittleEndian.PutUint32(record[sumAt:], sum(record, key))
}

func sum(record []byte, key string) uint32 {
	crc := crc32.Checksum(record[:sumAt], castagnoli)
	crc = crc32.Update(crc, castagnoli, record[recordLen:])
	return crc32.Update(crc, castagnoli, []byte(key))
}

// check returns an error if a record is not what was written.
func check(record []byte, key string) error {
	if len(record) < recordLen || binary.LittleEndian.Uint32(record[sumAt:]) != sum(record, key) {
		return fmt.Errorf("%w: the record of %.60q is not what was written", ErrDamaged, key)
	}
	return nil
}

func versionOf(record []byte) uint64 { return binary.LittleEndian.Uint64(record) }

// expiryOf returns when a record expires in Unix milliseconds; 0 means never.
func expiryOf(record []byte) int64 { return int64(binary.LittleEndian.Uint64(record[expiresAt:])) }

// expired reports whether the time at has come. 0 stands for never.
func expired(expires, now int64) bool { return expires != 0 && expires <= now }

// entryOf returns a copy of a record as an entry.
func entryOf(key string, record []byte) state.Entry {
	e := state.Entry{Key: key, Version: versionOf(record), Value: append(make([]byte, 0, len(record)-recordLen), record[recordLen:]...)}
	if expires := expiryOf(record); expires != 0 {
		e.Expires = time.UnixMilli(expires)
	}
	return e
}

// A tally is what the file stores about a space: its usage, and the last version that was assigned.
type tally struct {
	state.Usage
	version uint64
}

const tallyLen = 24

func (t tally) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, tallyLen), uint64(t.Entries))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Bytes))
	return binary.LittleEndian.AppendUint64(b, t.version)
}

// decodeTally returns the zero tally for a space that was never written to.
func decodeTally(b []byte) (t tally, err error) {
	switch len(b) {
	case 0:
	case tallyLen:
		t.Entries = int64(binary.LittleEndian.Uint64(b))
		t.Bytes = int64(binary.LittleEndian.Uint64(b[8:]))
		t.version = binary.LittleEndian.Uint64(b[16:])
	default:
		err = fmt.Errorf("%w: the tally of a space has %d bytes", ErrDamaged, len(b))
	}
	return t, err
}

// The index by expiry has a key for each record that expires: the time, as a big-endian number, then the record's key.
const dueLen = 8

func dueKey(expires int64, key string) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, dueLen+len(key)), uint64(expires)), key...)
}

func dueTime(due []byte) int64 { return int64(binary.BigEndian.Uint64(due)) }
