package toolset

import (
	"encoding/base64"
	"strings"

	"github.com/toolsrv/toolsrv/internal/naming"
)

// A cursor names the last tool of the previous page, so that it means the same on every replica and after any change of the list. A checksum of four
// bytes detects cursors that no server has issued. A cursor is not a secret: a client that forges one still sees only the tools that its principal
// may call.

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
