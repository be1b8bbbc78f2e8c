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

// writeJSON writes JSON that may hold foreign text. On a terminal, which would obey some of it, that is escaped.
func writeJSON(w io.Writer, b []byte) error {
	if isTerminal(w) {
		b = escapeJSON(b)
	}
	_, err := w.Write(b)
	return err
}

// escapeJSON escapes what would not be seen. The JSON means the same: \r can only be between its values, where a space will do.
func escapeJSON(b []byte) []byte {
	return text.EscapeBytes(bytes.ReplaceAll(b, []byte("\r"), []byte(" ")))
}
