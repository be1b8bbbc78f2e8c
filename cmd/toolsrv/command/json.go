package command

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/toolsrv/toolsrv/internal/text"
)

// printJSON prints a value as JSON for scripts and for people. What is foreign in it may reach a terminal by way of a log of CI.
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

// writeJSON writes JSON that may hold foreign text: as it is, but on a terminal, which would obey some of it.
func writeJSON(w io.Writer, b []byte) error {
	if isTerminal(w) {
		b = escapeJSON(b)
	}
	_, err := w.Write(b)
	return err
}

// escapeJSON escapes what would not be seen. It is the same JSON: \r can only stand between its values, where a space does.
func escapeJSON(b []byte) []byte {
	return text.EscapeBytes(bytes.ReplaceAll(b, []byte("\r"), []byte(" ")))
}
