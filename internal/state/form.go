package state

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNewer is returned for a record of a form that this program does not know: a newer one wrote it. It has to stay as it is.
var ErrNewer = errors.New("written by a newer version of toolsrv")

// Encode returns v as a record of a form: the form in one byte, then v as JSON. A form is at least 1, and each change of what v is that an
// older program would misread has a new one, which is written where [FormOf] allows it: v is then as that form has it.
func Encode(form byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return append([]byte{form}, text...), nil
}

// Decode reads a record that Encode has made into v. form is the newest that the caller knows; v knows how to read the older ones, too.
func Decode(record []byte, form byte, v any) error {
	if err := CheckForm(record, form); err != nil {
		return err
	}
	if err := json.Unmarshal(record[1:], v); err != nil {
		return fmt.Errorf("decode a record: %w", err)
	}
	return nil
}

// A Formed is a space that other processes read, which may be of an older version.
type Formed interface {
	Space
	// Form is the newest form of a record that all of them know. It is known at once, and never becomes less.
	Form() byte
}

// FormOf returns the form in which a record of a space may be written by a program that knows one.
func FormOf(space Space, known byte) byte {
	if of, ok := space.(Formed); ok {
		return min(known, of.Form())
	}
	return known
}

// CheckForm returns an error about ErrNewer where a record has a newer form than the one that is known, and another if it has none.
func CheckForm(record []byte, form byte) error {
	switch {
	case len(record) == 0 || record[0] == 0:
		return errors.New("decode a record: it has no form")
	case record[0] > form:
		return fmt.Errorf("%w: its form is %d, but this version reads %d", ErrNewer, record[0], form)
	}
	return nil
}
