package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// An Entry is one change, or one attempt that was refused. It contains neither secrets nor tokens. The Log sets Number, Time, Previous and Omitted.
type Entry struct {
	Number    uint64          `json:"number" description:"The entry's number, from 1."`
	Time      time.Time       `json:"time" description:"When the entry was made."`
	Previous  string          `json:"previous" description:"The hash of the entry before; empty for the first."`
	Action    string          `json:"action" description:"What was done or tried, such as tokens.add."`
	Who       string          `json:"who,omitempty" description:"The name of the caller who made the change, or tried to."`
	Origin    string          `json:"origin,omitempty" description:"How the caller was identified, such as token or socket; process means the server itself."`
	Caller    string          `json:"caller,omitempty" description:"What distinguishes the caller from others of that name, such as oidc+https%3a%2f%2fid.example.com+ann; missing if there can't be others."`
	From      string          `json:"from,omitempty" description:"The address of the client, or socket."`
	Target    string          `json:"target,omitempty" description:"What was changed, or was to be changed."`
	Before    json.RawMessage `json:"before,omitempty" description:"What the target was before."`
	After     json.RawMessage `json:"after,omitempty" description:"What the target is now."`
	RequestID string          `json:"request_id,omitempty" description:"The id of the request."`
	Refused   string          `json:"refused,omitempty" description:"Why nothing was changed."`
	Omitted   int64           `json:"omitted,omitempty" description:"How many refused attempts since the previous entry have no entry of their own."`
}

// MaxValue is how many bytes of JSON Before and After may each have. In a larger value, lists are cut short; if that does not suffice, the value is
// replaced by its size.
const MaxValue = 4 << 10

// The largest sizes of texts, in bytes.
const (
	maxWord = 200
	maxText = 500
)

// bound shortens texts and values that are too long, and removes secrets with clean.
func (e *Entry) bound(clean func(string) string) {
	for s, most := range map[*string]int{&e.Action: maxWord, &e.Who: maxWord, &e.Origin: maxWord, &e.Caller: maxWord, &e.From: maxWord, &e.RequestID: maxWord, &e.Target: maxText, &e.Refused: maxText} {
		*s = shown(clean(*s), most)
	}
	for _, v := range []*json.RawMessage{&e.Before, &e.After} {
		*v = boundValue(*v, clean)
	}
}

// boundValue returns a value that is small enough, or a text in its place.
func boundValue(v json.RawMessage, clean func(string) string) json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	cleaned := clean(string(v))
	encoded, err := json.Marshal(json.RawMessage(cleaned))
	switch {
	case err != nil:
		return quoted(shown(cleaned, maxText))
	case len(encoded) > MaxValue:
		return fitted(encoded)
	}
	return encoded
}

// fitted returns a value with its lists cut until it is small enough, or else a text with its size.
func fitted(v json.RawMessage) json.RawMessage {
	for most := 100; most > 0; most /= 2 {
		var tree any
		if json.Unmarshal(v, &tree) != nil {
			break
		}
		if encoded, err := json.Marshal(shortened(tree, most)); err == nil && len(encoded) <= MaxValue {
			return encoded
		}
	}
	return quoted(fmt.Sprintf("%d bytes, which is too much for an entry", len(v)))
}

// shortened returns a value with its lists cut to at most that many elements. Each cut list ends with the number of those left out.
func shortened(v any, most int) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = shortened(member, most)
		}
	case []any:
		for i := range v[:min(most, len(v))] {
			v[i] = shortened(v[i], most)
		}
		if len(v) > most {
			return append(v[:most:most], fmt.Sprintf("and %d more", len(v)-most))
		}
	}
	return v
}

// shown returns a text with invisible characters escaped, of at most that many bytes.
func shown(s string, most int) string { return text.Clip(text.Escape(text.Prefix(s, most)), most) }

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string can always be encoded
	return b
}

// attrs returns the entry as attributes of a log line.
func (e *Entry) attrs() []any {
	attrs := []any{slog.Bool("audit", true)}
	for _, a := range []struct{ key, value string }{
		{"action", e.Action}, {"who", e.Who}, {"origin", e.Origin}, {"caller", e.Caller}, {"from", e.From}, {"target", e.Target}, {"before", string(e.Before)}, {"after", string(e.After)},
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

// A Hash is the hash of an entry, which the next entry contains.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// parseHash parses what String returns.
func parseHash(s string) (h Hash, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%q is not a hash", text.Short(s))
	}
	return Hash(b), nil
}

// A Record is an entry as it is stored.
type Record struct {
	Entry
	Hash string `json:"hash" description:"The SHA-256 of its JSON without this member, in hexadecimal."`
}
