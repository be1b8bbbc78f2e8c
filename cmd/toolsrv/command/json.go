package command

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/toolsrv/toolsrv/internal/text"
)

// printJSON prints a value as JSON for scripts and for people. Foreign text in it may reach a terminal through a CI log.
func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// writeJSON writes JSON that may contain foreign text. For a terminal, hidden characters are escaped.
func writeJSON(w io.Writer, b []byte) error {
	if isTerminal(w) {
		b = escapeJSON(b)
	}
	_, err := w.Write(b)
	return err
}

// escapeJSON escapes hidden characters. The JSON keeps its meaning: a \r, which can only be between values, becomes a space.
func escapeJSON(b []byte) []byte {
	return text.EscapeBytes(bytes.ReplaceAll(b, []byte("\r"), []byte(" ")))
}
