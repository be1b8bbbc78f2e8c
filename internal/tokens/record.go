package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
)

// Space is the name of the space with the tokens, and Form the format of its records.
const (
	Space = "tokens"
	Form  = 1
)

// The keys of the space.
const (
	keyName   = "name/" // followed by a token's id: its record
	keyUsed   = "used/" // followed by the first letter of ids: when these tokens were used
	keyIssued = "issued"
)

// maxRecord bounds a record: 64 scopes and networks with room to spare.
const maxRecord = 64 << 10

// A record is a stored token. Whoever reads it can't use the token.
type record struct {
	ID       string         `json:"id"`
	Parent   string         `json:"parent,omitempty"` // the id of the maker of a narrower token
	Scopes   []string       `json:"scopes"`
	Networks []netip.Prefix `json:"networks,omitempty"`
	Digest   digest         `json:"sha256"`
	Former   *former        `json:"former,omitempty"`
	By       string         `json:"by,omitempty"` // who made it
	Created  time.Time      `json:"created"`
	Expires  time.Time      `json:"expires,omitzero"` // zero: never
	Lifetime time.Duration  `json:"lifetime"`         // which a rotation starts again; 0 means forever
	Rate     rates.Text     `json:"rate,omitzero"`
}

// A former is the secret that a rotation has replaced, and until when it is accepted.
type former struct {
	Digest digest    `json:"sha256"`
	Until  time.Time `json:"until"`
}

// A digest is the SHA-256 of a token, or a keyed digest. The secret has 256 bits, so no slower hash is needed.
type digest [sha256.Size]byte

// MarshalText writes a digest in hexadecimal digits.
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads it.
func (d *digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("a digest has %d digits, not %d", hex.EncodedLen(len(d)), len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// used says when tokens were last used, in minutes since 1970, by their ids.
type used map[string]int64
