package state

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNewer is returned for a record in a form that this program does not know, since a newer version wrote it. Such a record must not be changed.
var ErrNewer = errors.New("written by a newer version of toolsrv")

// Encode returns v as a record: its form in one byte, then v as JSON. Forms are numbered from 1. A change of v that an older program would misread
// gets a new form, which may be written only where [FormOf] allows it; until then, v must have the older form.
func Encode(form byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return append([]byte{form}, text...), nil
}

// Decode reads into v a record that Encode has made. form is the newest one that the caller knows. v must be able to read the older ones, too.
func Decode(record []byte, form byte, v any) error {
	if err := CheckForm(record, form); err != nil {
		return err
	}
	if err := json.Unmarshal(record[1:], v); err != nil {
		return fmt.Errorf("decode a record: %w", err)
	}
	return nil
}

// A Formed is a space that is also read by other processes, some of which may be of an older version.
type Formed interface {
	Space
	// Form is the newest form of a record that all these processes know. It is known at once, and never decreases.
	Form() byte
}

// FormOf returns the form in which a program may write records to a space, if known is the newest form that it knows.
func FormOf(space Space, known byte) byte {
	if of, ok := space.(Formed); ok {
		return min(known, of.Form())
	}
	return known
}

// CheckForm returns an error that wraps ErrNewer if a record's form is newer than form, and another error if the record has no form.
func CheckForm(record []byte, form byte) error {
	switch {
	case len(record) == 0 || record[0] == 0:
		return errors.New("decode a record: it has no form")
	case record[0] > form:
		return fmt.Errorf("%w: its form is %d, but this version reads %d", ErrNewer, record[0], form)
	}
	return nil
}
