package recent

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// A line is stored as its time, level and message, and then its attributes, each with a name, a kind and a value. That costs a fraction of what JSON
// would, since few lines are ever read.

// The kinds of values.
const (
	isText byte = iota
	isInteger
	isUnsigned
	isFloat
	isTrue
	isFalse
	isTime
	isDuration
	isJSON
)

// appendLine appends a line.
func appendLine(to []byte, h *handler, r *slog.Record) []byte {
	to = binary.AppendVarint(to, r.Time.UnixNano())
	to = binary.AppendVarint(to, int64(r.Level))
	to = appendText(to, r.Message)
	to = append(to, h.preset...)
	r.Attrs(func(a slog.Attr) bool {
		to = appendAttribute(to, h.group, a)
		return true
	})
	return to
}

func appendText(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// appendAttribute appends an attribute, or the attributes of a group.
func appendAttribute(to []byte, group string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range v.Group() {
			to = appendAttribute(to, group, inner)
		}
		return to
	}
	to = binary.AppendUvarint(to, uint64(len(group)+len(a.Key)))
	to = append(append(to, group...), a.Key...)
	switch v.Kind() {
	case slog.KindString:
		return appendText(append(to, isText), v.String())
	case slog.KindInt64:
		return binary.AppendVarint(append(to, isInteger), v.Int64())
	case slog.KindDuration:
		return binary.AppendVarint(append(to, isDuration), int64(v.Duration()))
	case slog.KindUint64:
		return binary.AppendUvarint(append(to, isUnsigned), v.Uint64())
	case slog.KindFloat64:
		return binary.LittleEndian.AppendUint64(append(to, isFloat), math.Float64bits(v.Float64()))
	case slog.KindBool:
		if v.Bool() {
			return append(to, isTrue)
		}
		return append(to, isFalse)
	case slog.KindTime:
		return binary.AppendVarint(append(to, isTime), v.Time().UnixNano())
	}
	if _, isError := v.Any().(error); !isError {
		if encoded, err := json.Marshal(v.Any()); err == nil {
			return appendText(append(to, isJSON), string(encoded))
		}
	}
	return appendText(append(to, isText), fmt.Sprint(v.Any())) // fmt survives an Error method that panics
}

// A reader reads lines that appendLine has written.
type reader []byte

func (r *reader) integer() int64 {
	n, size := binary.Varint(*r)
	*r = (*r)[size:]
	return n
}

func (r *reader) unsigned() uint64 {
	n, size := binary.Uvarint(*r)
	*r = (*r)[size:]
	return n
}

func (r *reader) bytes(n int) []byte {
	b := (*r)[:n]
	*r = (*r)[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes(int(r.unsigned()))) }

// value reads a value and returns it as JSON.
func (r *reader) value() any {
	switch r.bytes(1)[0] {
	case isInteger:
		return r.integer()
	case isUnsigned:
		return r.unsigned()
	case isFloat:
		f := math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprint(f)
		}
		return f
	case isTrue:
		return true
	case isFalse:
		return false
	case isTime:
		return time.Unix(0, r.integer()).UTC().Format(time.RFC3339Nano)
	case isDuration: // with its unit, as in the text form of the log
		return time.Duration(r.integer()).String()
	case isJSON:
		return json.RawMessage(r.text())
	}
	return r.text()
}

// parse reads the beginning of a stored line, up to the attributes. ok is false for a gap.
func parse(number uint64, kept []byte) (line Line, ok bool) {
	if len(kept) == 0 {
		return line, false
	}
	r := reader(kept)
	line = Line{Number: number, Time: time.Unix(0, r.integer()).UTC(), Level: slog.Level(r.integer())}
	line.message, line.rest = r.bytes(int(r.unsigned())), r
	return line, true
}

// Text returns the value of an attribute if it is a text, or "". It is called for many lines and few attributes, so it reads no other value, and
// keeps its position as a number: moving a slice would take three times as long.
func (l *Line) Text(key string) (value string) {
	b := l.rest
	for at := 0; at < len(b); {
		n, size := binary.Uvarint(b[at:])
		at += size
		name := b[at : at+int(n)]
		at += int(n)
		kind := b[at]
		at++
		switch kind {
		case isFloat:
			at += 8
		case isInteger, isUnsigned, isTime, isDuration:
			_, size = binary.Uvarint(b[at:]) // a Varint has the same length
			at += size
		case isText, isJSON:
			n, size = binary.Uvarint(b[at:])
			at += size
			if kind == isText && string(name) == key { // as in Attributes, the last attribute of a name counts
				value = string(b[at : at+int(n)])
			}
			at += int(n)
		}
	}
	return value
}

// read reads the message and the attributes.
func (l *Line) read() {
	l.Message, l.Attributes = string(l.message), map[string]any{}
	for len(l.rest) > 0 {
		key := l.rest.text()
		l.Attributes[key] = l.rest.value()
	}
}
