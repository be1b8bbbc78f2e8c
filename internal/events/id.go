package events

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
)

// ids makes ids of events that don't give away how many other events there were: each id is one block that is encrypted with a key of this process.
// The id of another process is not valid here.
type ids struct {
	block cipher.Block
	run   uint32
}

func newIDs() *ids {
	var random [16 + 4]byte
	_, _ = rand.Read(random[:])            // it never fails
	block, _ := aes.NewCipher(random[:16]) // nor does this fail for a key of this size
	return &ids{block, binary.BigEndian.Uint32(random[16:])}
}

// of returns the id of an event, which is the same for all listeners.
func (i *ids) of(number uint64) string { return i.seal(number, 0) }

// position returns an id for the position after an event, a different one each time.
func (i *ids) position(number uint64) string {
	var salt [4]byte
	_, _ = rand.Read(salt[:])
	return i.seal(number, binary.BigEndian.Uint32(salt[:])|1)
}

// idLength is the length of an id.
var idLength = base64.RawURLEncoding.EncodedLen(aes.BlockSize)

func (i *ids) seal(number uint64, salt uint32) string {
	var b [aes.BlockSize]byte
	binary.BigEndian.PutUint32(b[:], i.run)
	binary.BigEndian.PutUint32(b[4:], salt)
	binary.BigEndian.PutUint64(b[8:], number)
	i.block.Encrypt(b[:], b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// number returns the number that an id stands for, or false if this process did not make the id.
func (i *ids) number(id string) (uint64, bool) {
	if len(id) != idLength {
		return 0, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(raw) != aes.BlockSize {
		return 0, false
	}
	i.block.Decrypt(raw, raw)
	return binary.BigEndian.Uint64(raw[8:]), binary.BigEndian.Uint32(raw) == i.run
}
