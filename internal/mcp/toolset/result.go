package toolset

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Result is the outcome of a tool's call, in MCP's form.
type Result struct {
	entry    *entry // the entry of the tool; nil if the call failed
	json     []byte // what the tool returned, or the structured form of an error
	text     []byte // json in the form of the text block, without the bytes of files; nil if the whole result is a file
	files    []blob
	textOnly bool // clients can't read it as structured content
	failed   *wasmtools.Error
	sentence string // the sentence of an error
}

// Failed returns why the call failed, or nil. It is for logs, and must not be shown to clients.
func (r *Result) Failed() *wasmtools.Error { return r.failed }

// newResult makes the result of a successful call.
func newResult(e *entry, json []byte) Result {
	json, ok := readable(json)
	r := Result{entry: e, json: json, text: json, textOnly: !ok}
	if e.media != nil {
		r.files, r.text = takeBlobs(json, e.media)
	}
	return r
}

// Blocks returns the content: the result as text, and then its files. A string result is the text itself, and any other result is JSON.
func (r *Result) Blocks() []Block {
	if r.failed != nil {
		return []Block{{Kind: Text, Text: r.sentence}}
	}
	var blocks []Block
	if r.text != nil {
		text := string(r.text)
		if value := trim(r.text); value[0] == '"' {
			var s string
			if json.Unmarshal(value, &s) == nil {
				text = s
			}
		}
		blocks = append(blocks, Block{Kind: Text, Text: text})
	}
	for i := range r.files {
		blocks = append(blocks, r.files[i].block(r.entry.tool.Path()))
	}
	return blocks
}

// Structured returns the structured content as JSON, or nil if the era does not allow any for this result, or clients could not read it. It must not
// be changed.
func (r *Result) Structured(era Era) json.RawMessage {
	if r.failed != nil || r.textOnly || era == Legacy && trim(r.json)[0] != '{' {
		return nil
	}
	return r.json
}

// Append appends the result as the members of a JSON object without its braces, so that others can be added. meta has further members of _meta, also
// without braces, or is empty. The appended text has no line break.
func (r *Result) Append(dst []byte, era Era, meta string) []byte {
	dst = append(dst, `"content":[`...)
	if r.failed != nil || r.text != nil {
		dst = append(dst, `{"type":"text","text":`...)
		switch {
		case r.failed != nil:
			dst = appendString(dst, r.sentence)
		case trim(r.text)[0] == '"':
			dst = append(dst, trim(r.text)...) // the string as the tool escaped it
		default:
			dst = appendText(dst, r.text)
		}
		dst = append(dst, '}')
	}
	for i := range r.files {
		if i > 0 || r.text != nil {
			dst = append(dst, ',')
		}
		dst = r.files[i].append(dst, r.entry.tool.Path())
	}
	dst = append(dst, ']')
	if structured := r.Structured(era); structured != nil {
		dst = append(dst, `,"structuredContent":`...)
		dst = appendLine(dst, structured)
	}
	if r.failed != nil {
		dst = append(dst, `,"isError":true`...)
		dst = append(append(append(dst, `,"_meta":{`...), errorKey+":"...), r.json...)
		if meta != "" {
			dst = append(append(dst, ','), meta...)
		}
		return append(dst, '}')
	}
	if meta != "" {
		dst = append(append(append(dst, `,"_meta":{`...), meta...), '}')
	}
	return dst
}

// trim returns JSON without the white space around it.
func trim(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

// appendLine appends JSON with its line breaks turned into spaces. Line breaks occur only between values, and would end a message on stdio or a line
// of an event stream.
func appendLine(dst, text []byte) []byte {
	start := len(dst)
	dst = append(dst, text...)
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return dst
	}
	for i := start; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return dst
}

// appendString appends a JSON string with as few escapes as JSON allows.
func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return appendEscaped(dst, s)
}

// appendText appends JSON as a JSON string.
func appendText(dst, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\ufffd"))
	}
	return appendEscaped(dst, s)
}

func appendEscaped[T string | []byte](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}
