package tokens

import (
	"crypto/rand"
	"encoding/base32"
	"hash/crc32"
	"strings"

	"github.com/toolsrv/toolsrv/internal/credential"
)

// A token is tsv_<id>_<secret><checksum>, where the id has 48 bits, the secret has 256, and the checksum of everything before it has 32. All are
// written in lower-case letters and the digits 2 to 7: a double click selects the whole token, and nobody mistakes a letter for a digit.
const (
	prefix      = credential.Prefix
	idLen       = 10
	secretLen   = 52
	checksumLen = 7
	tokenLen    = len(prefix) + idLen + 1 + secretLen + checksumLen
)

// Expression is a regular expression for scanners that look for tokens in files and logs.
const Expression = `\btsv_[a-z2-7]{10}_[a-z2-7]{59}\b`

// Within reports whether a text contains one of our tokens.
func Within(s string) bool {
	for {
		at := strings.Index(s, prefix)
		if at < 0 {
			return false
		}
		s = s[at:]
		if len(s) >= tokenLen {
			if _, _, intact := idOf(s[:tokenLen]); intact {
				return true
			}
		}
		s = s[len(prefix):]
	}
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

func encode(b []byte) string {
	return base32.NewEncoding(alphabet).WithPadding(base32.NoPadding).EncodeToString(b)
}

// newID returns an id. Among a million ids, the chance that two are the same is 1 in 500; stores refuse the second one.
func newID() string {
	var b [6]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return encode(b[:])
}

// newToken returns a token with an id.
func newToken(id string) string {
	var secret [32]byte
	rand.Read(secret[:])
	body := prefix + id + "_" + encode(secret[:])
	return body + checksum(body)
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	return encode([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// idOf returns the id of a token in our form, which anybody may have made up. intact is false if the token is mistyped or cut off; then there is no
// id.
func idOf(token string) (id string, isOurs, intact bool) {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return "", false, false
	}
	body := token[:max(0, len(token)-checksumLen)]
	if len(token) != tokenLen || rest[idLen] != '_' || strings.Trim(rest[:idLen]+rest[idLen+1:], alphabet) != "" || checksum(body) != token[len(body):] {
		return "", true, false
	}
	return rest[:idLen], true, true
}
