package session

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/signing"
)

// An id has the version of the session in eight digits, and what makes it this one. It ends with the number of a key, and a signature with
// that: of all of it, of the namespace and of the owner. So only they have a session of that id, whoever else has learned it.
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

// checkID returns the version that a session of this namespace and owner has agreed on, and false where no session has the id.
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
	return version, protocol.HasSessions(version) // another server may speak other versions
}

// signedText returns what an id is signed with: no other id, namespace and owner have the same text.
func signedText(raw []byte, namespace string, own owner) []byte {
	text := append([]byte(idPurpose), raw...)
	for _, part := range []string{namespace, own.name, own.origin, own.realm} {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return append(text, own.credential...)
}

// mostEnded is how many sessions that have ended are known at least. It is half of how many are known at most.
const mostEnded = 32 << 10

// ended are ids of sessions that have ended, though they are signed. It forgets those that have ended first.
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
