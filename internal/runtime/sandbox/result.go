package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/convention"
)

// result returns the result of a guest that ended in one of the ways that its calling convention provides for.
func (c *call) result(end convention.Result) ([]byte, error) {
	switch end.End {
	case convention.Done:
		return c.checkedOutput()
	case convention.Reported:
		if c.failure == nil {
			return nil, &Error{Outcome: ToolBadOutput, Message: end.Message}
		}
		e, err := parseFailure(c.filtered("error", c.failure))
		if err != nil {
			return nil, badOutput("What the tool passed to fail %s.", err)
		}
		return nil, e
	case convention.Failed:
		message := strings.ToValidUTF8(strings.TrimSpace(string(c.filtered("error", []byte(end.Reason)))), "\uFFFD")
		return nil, &Error{Outcome: ToolError, Message: cmp.Or(message, end.Message)}
	}
	return nil, &Error{Outcome: ToolBadOutput, Message: end.Message}
}

func (c *call) checkedOutput() ([]byte, error) {
	if c.output == nil {
		return nil, badOutput("The tool ended without any output.")
	}
	output := c.filtered("result", c.output)
	if err := checkJSON(output); err != nil {
		return nil, badOutput("The tool's output %s.", err)
	}
	return output, nil
}

// maxDepth is how deeply a guest's JSON may be nested. Clients decode it, many of them recursively.
const maxDepth = 1000

// checkJSON returns nil if text is valid JSON for clients. Otherwise the error continues a sentence that begins with the text's name.
func checkJSON(text []byte) error {
	err := jsontree.Check(text, maxDepth)
	if err == nil {
		return nil
	}
	var wrong *jsontree.SyntaxError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("is empty")
	case !errors.As(err, &wrong):
		return fmt.Errorf("is not valid JSON: %w", err)
	case wrong.Msg == jsontree.InvalidUTF8:
		return fmt.Errorf("is not UTF-8 at byte %d", wrong.Offset)
	case wrong.Msg == jsontree.TooDeep:
		return fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	return fmt.Errorf("is not valid JSON: %w", err)
}

// badOutput returns the error of a guest that ended well, but without a valid result.
func badOutput(format string, args ...any) *Error {
	return &Error{Outcome: ToolBadOutput, Message: fmt.Sprintf(format, args...)}
}

// maxToolCode is the longest code in a guest's failure, in bytes.
const maxToolCode = 128

// parseFailure reads the JSON passed to fail. It is strict, because a misspelt member would silently change what clients see. The error continues a
// sentence that begins with the text's name.
func parseFailure(text []byte) (*Error, error) {
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	e := &Error{Outcome: ToolError}
	seen := map[string]bool{}
	isObject, err := jsontree.Members(text, func(name string, value []byte) error {
		var field any
		switch name {
		case "message":
			field = &e.Message
		case "code":
			field = &e.Code
		case "status":
			field = &e.Status
		case "data":
			field = &e.Data
		default:
			return fmt.Errorf("has the unknown member %.40q; message, code, status and data are known", name)
		}
		if seen[name] {
			return fmt.Errorf("has the member %.40q twice", name)
		}
		seen[name] = true
		if json.Unmarshal(value, field) != nil {
			return fmt.Errorf("has a %s of the wrong type", name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !isObject {
		return nil, errors.New(`is not an object with a "message"`)
	}
	switch {
	case e.Message == "":
		return nil, errors.New("has no message")
	case len(e.Code) > maxToolCode:
		return nil, fmt.Errorf("has a code of %d bytes; the limit is %d", len(e.Code), maxToolCode)
	case seen["status"] && (e.Status < 400 || e.Status > 599):
		return nil, fmt.Errorf("has the status %d, which is not within 400 to 599", e.Status)
	}
	return e, nil
}
