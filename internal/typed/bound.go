package typed

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// above reports whether the number a is greater than b.
func above(a, b json.RawMessage) bool {
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	return errX == nil && errY == nil && x > y
}

// contradiction reports bounds that no value is within.
func (s *schema) contradiction() error {
	for _, pair := range []struct {
		least, most       string
		low, high         json.RawMessage
		equalIsAlsoTooFew bool
	}{
		{"minimum", "maximum", s.Minimum, s.Maximum, false},
		{"minimum", "exclusiveMaximum", s.Minimum, s.ExclusiveMaximum, true},
		{"exclusiveMinimum", "maximum", s.ExclusiveMinimum, s.Maximum, true},
		{"exclusiveMinimum", "exclusiveMaximum", s.ExclusiveMinimum, s.ExclusiveMaximum, true},
		{"minLength", "maxLength", s.MinLength, s.MaxLength, false},
		{"minItems", "maxItems", s.MinItems, s.MaxItems, false},
	} {
		if pair.low == nil || pair.high == nil {
			continue
		}
		if above(pair.low, pair.high) || pair.equalIsAlsoTooFew && !above(pair.high, pair.low) {
			return fmt.Errorf("no value is within the %s %s and the %s %s", pair.least, pair.low, pair.most, pair.high)
		}
	}
	return nil
}

// admitAll reports the first of the values of a tag that is not within the bounds of s. Patterns and formats are left to
// the server.
func (s *schema) admitAll(key string, values []json.RawMessage) error {
	for _, value := range values {
		if bound := s.exceeded(value); bound != "" {
			return fmt.Errorf("the tag %s: %s is not within the %s", key, value, bound)
		}
	}
	return nil
}

// exceeded returns the bound that a value is not within, or nothing.
func (s *schema) exceeded(value json.RawMessage) string {
	size := func(n int, least, most json.RawMessage, names [2]string) string {
		switch length := number(int64(n)); {
		case least != nil && above(least, length):
			return names[0] + " " + string(least)
		case most != nil && above(length, most):
			return names[1] + " " + string(most)
		}
		return ""
	}
	switch value[0] {
	case '"':
		var text string
		if json.Unmarshal(value, &text) != nil {
			return ""
		}
		return size(utf8.RuneCountInString(text), s.MinLength, s.MaxLength, [2]string{"minLength", "maxLength"})
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return ""
		}
		return size(len(list), s.MinItems, s.MaxItems, [2]string{"minItems", "maxItems"})
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		switch {
		case s.Minimum != nil && above(s.Minimum, value):
			return "minimum " + string(s.Minimum)
		case s.Maximum != nil && above(value, s.Maximum):
			return "maximum " + string(s.Maximum)
		case s.ExclusiveMinimum != nil && !above(value, s.ExclusiveMinimum):
			return "exclusiveMinimum " + string(s.ExclusiveMinimum)
		case s.ExclusiveMaximum != nil && !above(s.ExclusiveMaximum, value):
			return "exclusiveMaximum " + string(s.ExclusiveMaximum)
		}
	}
	return ""
}
