package toolset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// This file and portable.go make what clients before 2026-07-28 see of a tool, with the help of flat.go in package schemas. Nothing else needs them.

// older returns the element of tools/list for these clients. input and output are the schemas as the author wrote them, and shown is the input schema
// as later clients see it.
func (e *entry) older(input, shown, output json.RawMessage) (json.RawMessage, error) {
	flat, rest, err := flatInput((*schemas.Schema)(e.tool.Parameters), input)
	if err != nil {
		return nil, fmt.Errorf("schema of the parameters: %w", err)
	}
	var plain json.RawMessage
	if e.tool.Result != nil {
		if plain, err = plainOutput((*schemas.Schema)(e.tool.Result), output); err != nil {
			return nil, fmt.Errorf("schema of the result: %w", err)
		}
	}
	if rest == "" && bytes.Equal(flat, shown) && bytes.Equal(plain, output) {
		return e.shown[Modern], nil // both elements are nearly always equal, and one copy saves memory
	}
	return e.element(flat, plain, withRest(e.tool.Description, rest))
}

// flatInput turns the author's schema of a tool's arguments into one whose root is a plain object: clients pass it to model APIs that refuse anything
// else. rest is a schema of the remaining rules, or empty.
func flatInput(s *schemas.Schema, text json.RawMessage) (flat json.RawMessage, rest string, err error) {
	flat, left := s.Flat()
	if same(flat, s.JSON()) {
		return text, string(left), nil
	}
	flat, err = compact(flat)
	return flat, string(left), err
}

// plainOutput returns the schema of a tool's result. text is what the author wrote. There is a schema only if all results are objects and all clients
// can compile it, since some clients refuse the whole list otherwise.
func plainOutput(s *schemas.Schema, text json.RawMessage) (plain json.RawMessage, err error) {
	switch standalone := s.Standalone(); {
	case standalone == nil:
		return nil, nil
	case same(standalone, s.JSON()):
		plain = text
	default:
		if plain, err = compact(standalone); err != nil {
			return nil, err
		}
	}
	if !isPortable(plain) {
		return nil, nil
	}
	return plain, nil
}

// same reports whether two texts share the same memory.
func same(a, b json.RawMessage) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// withRest returns a tool's description, followed by the schema of the remaining rules if there is room.
func withRest(description, rest string) string {
	if rest == "" {
		return description
	}
	for _, words := range []string{
		"The arguments must also fit this JSON Schema, whose references point into the schema of the arguments: " + rest,
		"The tool has more rules for its arguments than its schema shows. The error of a call that breaks one says which.",
	} {
		if all := strings.TrimLeft(description+"\n\n"+words, "\n"); utf8.RuneCountInString(all) <= maxDescription {
			return all
		}
	}
	return description
}
