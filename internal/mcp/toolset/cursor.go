package toolset

import (
	"encoding/base64"
	"strings"

	"github.com/toolsrv/toolsrv/internal/naming"
)

// A cursor names the last tool of the page before, so that it means the same on every replica and after any change of the
// list. Four bytes of a checksum refuse what no server has given out. It is not a secret: a client that makes one up sees no other
// tools than the principal may.

func newCursor(name string) string {
	sum := hash([]byte("cursor " + name))
	return base64.RawURLEncoding.EncodeToString(append(sum[:4], name...))
}

func readCursor(cursor string) (name string, ok bool) {
	if len(cursor) > 2*naming.Max {
		return "", false
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(text) <= 4 || strings.ContainsAny(cursor, "\r\n") {
		return "", false
	}
	name = string(text[4:])
	return name, newCursor(name) == cursor
}
