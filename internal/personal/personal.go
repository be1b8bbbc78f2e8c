// Package personal identifies callers: it returns the name under which a caller's private things are stored, such as files.
package personal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// An ID stands for one caller and no other. It consists of the caller's origin, realm and name, such as "issued+ann" or
// "oidc+https%3a%2f%2fid.example.com+ann%40example.com". It can be the name of a file or folder on every system, even if the system does not
// distinguish upper and lower case: it has at most [Max] of the characters a-z 0-9 - . _ ~ + and %.
type ID string

// Max is the largest length of an ID in bytes.
const Max = 200

// ErrNobody is returned for a caller without an ID.
var ErrNobody = errors.New("the caller has no name that is its own for good")

// Of returns the ID of a caller. A caller without credentials has none. Neither has a token without a name, since such tokens are numbered anew at
// each start.
func Of(p *wasmtools.Principal) (ID, error) { return of(p, p.String()) }

// Root returns the ID of the caller whose quota this one uses. A token that another token has made uses the quota of the first token, whose name
// comes before the first slash.
func Root(p *wasmtools.Principal) (ID, error) {
	name := p.String()
	if p.Origin() == OriginIssued {
		name, _, _ = strings.Cut(name, "/")
	}
	return of(p, name)
}

// Apart returns the ID of a caller who belongs to a realm, since callers of other realms can have the same name. Otherwise it returns "".
func Apart(p *wasmtools.Principal) ID {
	if p.Realm() == "" {
		return ""
	}
	id, _ := Of(p) // of nobody: ""
	return id
}

// Issued returns the ID of a caller with a token of the state.
func Issued(name string) (ID, error) {
	p, err := wasmtools.NewPrincipal(name, OriginIssued)
	if err != nil {
		return "", err
	}
	return Of(p)
}

// OriginIssued is the origin of the tokens of the state, which can make others.
const OriginIssued = "issued"

func of(p *wasmtools.Principal, name string) (ID, error) {
	switch p.Origin() {
	case "", wasmtools.OriginOpen, wasmtools.OriginToken:
		return "", ErrNobody
	}
	origin := encode(p.Origin())
	id := origin + "+" + encode(name)
	if p.Realm() != "" {
		id = origin + "+" + encode(p.Realm()) + "+" + encode(name)
	}
	if len(id) > Max { // no other ID has a ~
		sum := sha256.Sum256([]byte(id))
		if len(origin) > maxOrigin {
			origin = "x"
		}
		id = origin + "+~" + hex.EncodeToString(sum[:])
	}
	return ID(id), nil
}

// maxOrigin is the longest origin in an ID whose rest is a hash.
const maxOrigin = 64

// plain are the characters that are not encoded. Capital letters are encoded, since "Ann" and "ann" are two callers.
const plain = "abcdefghijklmnopqrstuvwxyz0123456789-._"

// encode returns a text in which each byte of a character that is not plain is written as % and two digits. Nothing is normalised: two texts that
// look alike stay different.
func encode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(plain, c) >= 0 && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			const digits = "0123456789abcdef"
			b.WriteString(string([]byte{'%', digits[c>>4], digits[c&15]}))
		}
	}
	return b.String()
}

// decode returns the text for which encode returns s, or false if there is none.
func decode(s string) (string, bool) {
	text, err := url.PathUnescape(s)
	return text, err == nil && text != "" && encode(text) == s
}

// Parse reads an ID. It accepts only the form that Of returns.
func Parse(s string) (ID, error) {
	if s == "" || len(s) > Max {
		return "", fmt.Errorf("it has %d bytes; 1 to %d are allowed", len(s), Max)
	}
	parts := strings.Split(s, "+")
	origin, ok := decode(parts[0])
	if sum, hashed := strings.CutPrefix(parts[len(parts)-1], "~"); ok && hashed && len(parts) == 2 {
		if raw, err := hex.DecodeString(sum); err == nil && len(raw) == sha256.Size && sum == hex.EncodeToString(raw) {
			return ID(s), nil
		}
	}
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return "", errMalformed
	}
	name, ok := decode(parts[len(parts)-1])
	if !ok {
		return "", errMalformed
	}
	p, err := wasmtools.NewPrincipal(name, origin)
	if err == nil && len(parts) == 3 {
		realm, written := decode(parts[1])
		if !written {
			return "", errMalformed
		}
		p, err = p.WithRealm(realm)
	}
	if err != nil {
		return "", err
	}
	if id, err := Of(p); err != nil || string(id) != s {
		return "", errMalformed
	}
	return ID(s), nil
}

// errMalformed does not show the text that is not an ID: it may be a secret in the wrong place.
var errMalformed = errors.New("write how the caller is known, a plus and the name, such as issued+ann for a token from `toolsrv tokens add`; capital letters and signs other than - . _ become % and two digits, such as %40 for @")
