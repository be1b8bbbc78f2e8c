package session

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/signing"
)

// An id has the version of the session in eight digits, and a random part. It ends with the number of a key and a signature made with that key, over
// the rest of the id, the namespace and the owner. So the id is useless to anyone but this owner in this namespace.
const (
	idForm    = 1
	idRandom  = 16
	idSigned  = 1 + 4 + idRandom
	idRaw     = idSigned + 4 + signing.Size
	idLen     = (idRaw*8 + 5) / 6
	idPurpose = "a session of MCP"
)

// newID returns the id of a new session.
func newID(keys *signing.Keys, version, namespace string, own owner) string {
	var raw [idRaw]byte
	raw[0] = idForm
	var year, month, day uint32
	_, _ = fmt.Sscanf(version, "%d-%d-%d", &year, &month, &day)
	binary.BigEndian.PutUint32(raw[1:], year*1_00_00+month*1_00+day)
	_, _ = rand.Read(raw[5:idSigned]) // which never fails
	number, signature := keys.Sign(signedText(raw[:idSigned], namespace, own))
	binary.BigEndian.PutUint32(raw[idSigned:], number)
	copy(raw[idSigned+4:], signature[:])
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// checkID returns the version in the id of a session of this namespace and owner, or false if the id is not valid for them.
func checkID(keys *signing.Keys, id, namespace string, own owner) (version string, ok bool) {
	var raw [idRaw]byte
	if len(id) != idLen {
		return "", false
	}
	if n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(id)); err != nil || n != idRaw || raw[0] != idForm {
		return "", false
	}
	date := binary.BigEndian.Uint32(raw[1:])
	version = fmt.Sprintf("%04d-%02d-%02d", date/1_00_00, date/1_00%1_00, date%1_00)
	if !keys.Check(binary.BigEndian.Uint32(raw[idSigned:]), signedText(raw[:idSigned], namespace, own), [signing.Size]byte(raw[idSigned+4:])) {
		return "", false
	}
	return version, protocol.HasSessions(version) // another server may support other versions
}

// signedText returns the text that is signed. It differs for any two combinations of id, namespace and owner.
func signedText(raw []byte, namespace string, own owner) []byte {
	text := append([]byte(idPurpose), raw...)
	for _, part := range []string{namespace, own.name, own.origin, own.realm} {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return append(text, own.credential...)
}

// mostEnded bounds how many ended sessions are remembered: at least the last mostEnded ones, and at most twice as many.
const mostEnded = 32 << 10

// ended remembers the ids of sessions that have ended, because their signatures are still valid. It forgets the oldest ids.
type ended struct{ newer, older map[string]struct{} }

func (e *ended) has(id string) bool {
	_, newer := e.newer[id]
	_, older := e.older[id]
	return newer || older
}

func (e *ended) add(id string) {
	if e.has(id) {
		return
	}
	if e.newer == nil || len(e.newer) >= mostEnded {
		e.newer, e.older = map[string]struct{}{}, e.newer
	}
	e.newer[id] = struct{}{}
}
