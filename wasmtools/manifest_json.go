package wasmtools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// maxManifestDepth is how deep objects and arrays of a manifest may nest.
const maxManifestDepth = 128

// checkJSON reports what keeps text from being one JSON value that every reader understands alike: wrong syntax or
// UTF-8, a repeated member, an escaped half of a character, endless nesting.
func checkJSON(text []byte) error {
	if !utf8.Valid(text) {
		at := 0
		for at < len(text) {
			r, size := utf8.DecodeRune(text[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return fmt.Errorf("%s: the byte %#x is not UTF-8", position(text, at), text[at])
	}
	// The token reader below is laxer in places than Unmarshal is.
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fmt.Errorf("%s: %w", position(text, int(syntax.Offset)-1), err)
		}
		return err
	}
	if at := halfCharacter(text); at >= 0 {
		return fmt.Errorf("%s: %s is half of a character: escape both halves, or write the character itself", position(text, at), text[at:at+6])
	}
	w := walker{decoder: json.NewDecoder(bytes.NewReader(text))}
	w.decoder.UseNumber()
	return w.value()
}

// position returns an offset in text as a person counts it.
func position(text []byte, offset int) string {
	before := text[:max(0, min(offset, len(text)))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])+1)
}

// halfCharacter returns the offset in a JSON text of the first escaped surrogate that has no partner, or -1. JSON allows
// one; no two readers agree on what it is.
func halfCharacter(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch unit := escapedUnit(text[i:]); {
		case unit < 0:
			i++ // what is escaped may be a backslash
		case unit >= 0xd800 && unit < 0xdc00:
			if next := escapedUnit(text[i+6:]); next < 0xdc00 || next > 0xdfff {
				return i
			}
			i += 11
		case unit >= 0xdc00 && unit < 0xe000:
			return i
		default:
			i += 5
		}
	}
	return -1
}

// escapedUnit returns the number in an escape like \u00e4 that text begins with, or -1.
func escapedUnit(text []byte) int64 {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(unit)
}

// A walker goes through a JSON text in search of repeated members and endless nesting.
type walker struct {
	decoder *json.Decoder
	place   []any // names (string) and indices (int)
}

// value walks through one value.
func (w *walker) value() error {
	token, err := w.decoder.Token()
	if err != nil {
		return w.wrap(err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if len(w.place) == maxManifestDepth {
		return fmt.Errorf("%s...: objects and arrays nest deeper than %d: flatten the schema, with $defs and $ref", text.Short(w.String()), maxManifestDepth)
	}
	w.place = append(w.place, nil)
	last := len(w.place) - 1
	seen := map[string]struct{}{}
	for i := 0; w.decoder.More(); i++ {
		w.place[last] = i
		if delim == '{' {
			token, err := w.decoder.Token()
			if err != nil {
				return w.wrap(err)
			}
			name, _ := token.(string)
			w.place[last] = name
			if _, twice := seen[name]; twice {
				return fmt.Errorf("%s stands there twice: remove one", w)
			}
			seen[name] = struct{}{}
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.place = w.place[:last]
	_, err = w.decoder.Token() // the closing bracket
	return w.wrap(err)
}

func (w *walker) wrap(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read JSON: %w", err)
}

// String returns the place, such as "tools[1].name".
func (w *walker) String() string {
	place := ""
	for _, step := range w.place {
		switch step := step.(type) {
		case string:
			place = joinPlace(place, step)
		case int:
			place += fmt.Sprintf("[%d]", step)
		}
	}
	return place
}

// joinPlace returns the place of a member.
func joinPlace(place, member string) string {
	plain := member != "" && len(member) <= MaxName && !strings.ContainsFunc(member, func(r rune) bool {
		return r != '_' && r != '$' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	switch {
	case !plain:
		return place + fmt.Sprintf("[%q]", text.Short(member))
	case place == "":
		return member
	}
	return place + "." + member
}
