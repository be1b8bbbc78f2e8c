package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// An Entry is one change, or one attempt that was refused. It has no secret and no token.
type Entry struct {
	// Number counts from 1, Time is when the entry was made, and Previous is the hash of the entry before, in hexadecimal; empty for the
	// first. The Log sets them.
	Number   uint64    `json:"number"`
	Time     time.Time `json:"time"`
	Previous string    `json:"previous"`
	// Action is what was done or tried, such as "token.add".
	Action string `json:"action"`
	// Who is the name and the origin of who did it, such as "ci (token)".
	Who string `json:"who,omitempty"`
	// From is the address of the client, or what stands for it, such as "socket uid 1000 (ann)".
	From string `json:"from,omitempty"`
	// Target is what it was done to, such as a tool's path.
	Target string `json:"target,omitempty"`
	// Before and After are the target as it was, and as it is.
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	// Refused is why nothing was changed; empty: it was.
	Refused string `json:"refused,omitempty"`
	// Omitted is how many refused attempts there were before, and since the last entry, that have none of their own.
	Omitted int64 `json:"omitted,omitempty"`
}

// Bounds of an entry in bytes. All in all it has less than 8 KiB.
const (
	maxWord  = 200
	maxText  = 500
	maxValue = 1 << 10
)

// bound shortens what is too long, and takes out what clean finds.
func (e *Entry) bound(clean func(string) string) {
	for s, most := range map[*string]int{&e.Action: maxWord, &e.Who: maxWord, &e.From: maxWord, &e.RequestID: maxWord, &e.Target: maxText, &e.Refused: maxText} {
		*s = shown(clean(*s), most)
	}
	for _, v := range []*json.RawMessage{&e.Before, &e.After} {
		*v = boundValue(*v, clean)
	}
}

// boundValue returns a value, or a text in its place.
func boundValue(v json.RawMessage, clean func(string) string) json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	cleaned := clean(string(v))
	var compact bytes.Buffer
	switch err := json.Compact(&compact, []byte(cleaned)); {
	case err != nil:
		return quoted(shown(cleaned, maxText))
	case compact.Len() > maxValue:
		return quoted(fmt.Sprintf("%d bytes, too many to be kept here", compact.Len()))
	}
	return compact.Bytes()
}

// shown returns a text without what does not show, and at most that long.
func shown(s string, most int) string { return text.Clip(text.Escape(text.Prefix(s, most)), most) }

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string can always be encoded
	return b
}

// attrs returns the entry for a line of the log.
func (e *Entry) attrs() []any {
	attrs := []any{slog.Bool("audit", true)}
	for _, a := range []struct{ key, value string }{
		{"action", e.Action}, {"who", e.Who}, {"from", e.From}, {"target", e.Target}, {"before", string(e.Before)}, {"after", string(e.After)},
		{"request_id", e.RequestID}, {"refused", e.Refused},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	if e.Omitted > 0 {
		attrs = append(attrs, slog.Int64("omitted", e.Omitted))
	}
	return attrs
}

// A Hash is what the next entry carries of one.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// parseHash reads what String has written.
func parseHash(s string) (h Hash, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%q is not a hash", text.Short(s))
	}
	return Hash(b), nil
}

// A Record is an entry as it is kept.
type Record struct {
	Entry
	// Hash is that of the entry, in hexadecimal: the SHA-256 of its JSON without this member.
	Hash string `json:"hash"`
}
