package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
)

// Space is the space of a store that has the tokens, and Form the form of its records.
const (
	Space = "tokens"
	Form  = 1
)

// Keys of the space.
const (
	keyName   = "name/" // and the token's: its record
	keyUsed   = "used/" // and the first letter of ids: when those tokens were used
	keyIssued = "issued"
)

// maxRecord bounds a record: 64 scopes and networks with room to spare.
const maxRecord = 64 << 10

// A record is a token as it is kept: whoever reads it can't use it.
type record struct {
	ID       string         `json:"id"`
	Parent   string         `json:"parent,omitempty"` // the id of the token that made this narrower one
	Scopes   []string       `json:"scopes"`
	Networks []netip.Prefix `json:"networks,omitempty"`
	Digest   digest         `json:"sha256"`
	Former   *former        `json:"former,omitempty"`
	By       string         `json:"by,omitempty"` // who made it
	Created  time.Time      `json:"created"`
	Expires  time.Time      `json:"expires,omitzero"` // zero: never
	Lifetime time.Duration  `json:"lifetime"`         // which a rotation gives again; 0: for ever
	Rate     rates.Text     `json:"rate,omitzero"`
}

// A former is the secret that a rotation has replaced, and until when it is taken.
type former struct {
	Digest digest    `json:"sha256"`
	Until  time.Time `json:"until"`
}

// A digest is a token's SHA-256, or that with a key. The secret has 256 bits, so nothing slower is needed.
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

// used is when tokens were used last, by their ids: in minutes since 1970.
type used map[string]int64
