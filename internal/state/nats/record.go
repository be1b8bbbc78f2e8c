package nats

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A bucket is the name of a bucket. Its stream has three kinds of subjects:
//
//	$KV.<bucket>.e.<space>          the turn of a space: each write to the space also writes a message here
//	$KV.<bucket>.e.<space>.<key>    the head of an entry, with its value if that is small
//	$KV.<bucket>.v.<space>.<key>.1  the first part of a value that is not small; further parts follow, and the head comes right after them
//
// Spaces and keys are in base64 for URLs, since the parts of a subject can't contain spaces, dots and asterisks.
type bucket string

func (b bucket) stream() string   { return "KV_" + string(b) }
func (b bucket) subjects() string { return "$KV." + string(b) + ".>" }
func (b bucket) heads() string    { return "$KV." + string(b) + ".e.>" }

// topic returns the subject of messages that are not stored.
func (b bucket) topic(name string) string { return "toolsrv." + string(b) + "." + name }

func (b bucket) turn(space string) string {
	return "$KV." + string(b) + ".e." + base64.RawURLEncoding.EncodeToString([]byte(space))
}

func (b bucket) head(space, key string) string {
	return b.turn(space) + "." + base64.RawURLEncoding.EncodeToString([]byte(key))
}

func (b bucket) part(space, key string, number int) string {
	return fmt.Sprintf("$KV.%s.v.%s.%s.%d", b, base64.RawURLEncoding.EncodeToString([]byte(space)), base64.RawURLEncoding.EncodeToString([]byte(key)), number)
}

// parse returns the space and the key of a head's subject. The key is empty for the turn of a space.
func (b bucket) parse(subject string) (space, key string, err error) {
	rest, ok := strings.CutPrefix(subject, "$KV."+string(b)+".e.")
	first, second, isHead := strings.Cut(rest, ".")
	if !ok || first == "" || isHead && second == "" {
		return "", "", errForeign
	}
	strict := base64.RawURLEncoding.Strict() // so that no two subjects mean the same key
	name, err := strict.DecodeString(first)
	if err != nil || len(name) > state.MaxKey {
		return "", "", errForeign
	}
	k, err := strict.DecodeString(second)
	if err != nil || len(k) > state.MaxKey {
		return "", "", errForeign
	}
	return string(name), string(k), nil
}

// errForeign is returned for a message that toolsrv has not written.
var errForeign = errors.New("it was not written by toolsrv")

// A head has these fields: the time when the entry expires, in Unix milliseconds or 0; the size of its value; the number of parts. If there are no
// parts, the value follows.
const (
	form    = 1
	headLen = 1 + 8 + 4 + 1
	// maxParts is how many parts a value may have. A value that does not fit into one message needs several.
	maxParts = 64
)

func newHead(expires int64, size, parts int, value []byte) []byte {
	h := make([]byte, headLen, headLen+len(value))
	h[0] = form
	binary.BigEndian.PutUint64(h[1:], uint64(expires))
	binary.BigEndian.PutUint32(h[9:], uint32(size))
	h[13] = byte(parts)
	return append(h, value...)
}

// parseHead reads a head. The value that it returns is a part of record, not a copy.
func parseHead(record []byte, most int) (e entry, value []byte, err error) {
	if len(record) < headLen || record[0] != form {
		return e, nil, errForeign
	}
	e.expires = int64(binary.BigEndian.Uint64(record[1:]))
	e.size = int(binary.BigEndian.Uint32(record[9:]))
	e.parts = int(record[13])
	value = record[headLen:]
	if e.size > most || e.expires < 0 || e.parts > maxParts || e.parts == 0 && len(value) != e.size || e.parts > 0 && len(value) > 0 {
		return e, nil, errForeign
	}
	return e, value, nil
}
