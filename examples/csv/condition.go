package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// compile makes a test from each condition.
func (t *table) compile(conditions []condition) ([]func(cells []string) bool, error) {
	var tests []func([]string) bool
	for i, c := range conditions {
		at, err := t.find(c.Column)
		if err != nil {
			return nil, err
		}
		test, err := c.test(t.kinds[at])
		if err != nil {
			return nil, &toolsrv.Error{Code: "invalid_condition", Message: fmt.Sprintf("where[%d]: %v", i, err)}
		}
		tests = append(tests, func(cells []string) bool { return test(cells[at]) })
	}
	return tests, nil
}

// test returns a function that reports whether a cell meets the condition.
func (c *condition) test(k kind) (func(cell string) bool, error) {
	switch c.Is {
	case "empty":
		return func(cell string) bool { return strings.TrimSpace(cell) == "" }, nil
	case "not_empty":
		return func(cell string) bool { return strings.TrimSpace(cell) != "" }, nil
	}
	if c.Value == nil || string(c.Value) == "null" {
		return nil, fmt.Errorf("%s needs a value; to find empty cells, use \"empty\"", c.Is)
	}
	if c.Is == "one_of" {
		var elements []json.RawMessage
		if json.Unmarshal(c.Value, &elements) != nil {
			return nil, fmt.Errorf("one_of needs a list of values, such as [\"a\", \"b\"]; got %.100s", c.Value)
		}
		wanted := make(map[any]bool, len(elements)) // a map, since a list may have thousands of values, and a table a hundred thousand rows
		for _, e := range elements {
			w, err := c.operand(e, k)
			if err != nil {
				return nil, err
			}
			wanted[k.worth(w)] = true
		}
		return func(cell string) bool { return wanted[k.worth(cell)] }, nil
	}
	switch c.Is {
	case "contains", "not_contains", "starts_with", "ends_with":
		k = text // a number is compared by its digits
	}
	w, err := c.operand(c.Value, k)
	if err != nil {
		return nil, err
	}
	switch c.Is {
	case "less", "at_most", "greater", "at_least":
		if k == text && isNumber(string(c.Value)) {
			return nil, fmt.Errorf("%s compares the number %s with the column %q, which is text (1,5 and 1,000 and $3 are not numbers here): pass the value as a text to compare by the alphabet, or numbers with a decimal point only", c.Is, c.Value, c.Column)
		}
	}
	low := strings.ToLower(w)
	switch c.Is {
	case "equal":
		return func(cell string) bool { return k.equal(cell, w) }, nil
	case "not_equal":
		return func(cell string) bool { return !k.equal(cell, w) }, nil
	case "less":
		return func(cell string) bool { return cell != "" && k.compare(cell, w) < 0 }, nil
	case "at_most":
		return func(cell string) bool { return cell != "" && k.compare(cell, w) <= 0 }, nil
	case "greater":
		return func(cell string) bool { return cell != "" && k.compare(cell, w) > 0 }, nil
	case "at_least":
		return func(cell string) bool { return cell != "" && k.compare(cell, w) >= 0 }, nil
	case "contains":
		return func(cell string) bool { return strings.Contains(strings.ToLower(cell), low) }, nil
	case "not_contains":
		return func(cell string) bool { return !strings.Contains(strings.ToLower(cell), low) }, nil
	case "starts_with":
		return func(cell string) bool { return strings.HasPrefix(strings.ToLower(cell), low) }, nil
	case "ends_with":
		return func(cell string) bool { return strings.HasSuffix(strings.ToLower(cell), low) }, nil
	}
	return nil, fmt.Errorf("unknown comparison %q", c.Is)
}

// worth returns a key that is the same for all cells that count as equal.
func (k kind) worth(cell string) any {
	if f, err := strconv.ParseFloat(cell, 64); k == number && err == nil {
		return f
	}
	return strings.ToLower(cell)
}

// equal reports whether a cell counts as equal to w. An empty cell equals an empty text only.
func (k kind) equal(cell, w string) bool {
	if cell == "" || w == "" {
		return cell == w
	}
	return k.compare(cell, w) == 0
}

// operand returns a value as the text with which cells of a kind are compared.
func (c *condition) operand(value json.RawMessage, k kind) (string, error) {
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value)
	}
	fits := true
	switch {
	case len(value) == 0 || value[0] == '[' || value[0] == '{' || string(value) == "null":
		return "", fmt.Errorf("%.100s is not a value to compare with: pass a text, a number or a boolean", value)
	case k == number:
		fits = s != "" && isNumber(s)
	case k == boolean:
		fits = isBoolean(s)
	}
	if !fits {
		return "", fmt.Errorf("the column %q holds values of the type %s, and %.100s is not one: pass such a value, or \"types\": \"text\"", c.Column, k, value)
	}
	return s, nil
}
