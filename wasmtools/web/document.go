package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Document is JSON that clients may cache and revalidate: its bytes, and the header values that go with them. It never
// changes.
type Document struct {
	body   []byte
	etag   string // strong, quoted
	tag    []string
	length []string
}

// NewDocument returns a document. The body must not change afterwards; etag is a strong tag with its quotes.
func NewDocument(body []byte, etag string) *Document {
	return &Document{body: body, etag: etag, tag: []string{etag}, length: []string{strconv.Itoa(len(body))}}
}

// SendDocument answers GET and HEAD with d, or with 304 if the client has it already.
func (x *Exchange) SendDocument(d *Document) {
	h := x.Header()
	h["Etag"] = d.tag
	h["Cache-Control"] = x.mux.fixed.noCache
	if a := x.in.admission; a != nil && len(a.dependencies) > 0 {
		if others := h["Vary"]; len(others) > 0 {
			h["Vary"] = append(slices.Clip(others), x.mux.fixed.authorization...)
		} else {
			h["Vary"] = x.mux.fixed.authorization
		}
	}
	if matchesAny(x.request.Header["If-None-Match"], d.etag) {
		x.WriteHeader(http.StatusNotModified)
		return
	}
	h["Content-Type"] = x.mux.fixed.json
	h["Content-Length"] = d.length
	x.WriteHeader(http.StatusOK)
	if x.request.Method != http.MethodHead {
		_, _ = x.Write(d.body)
	}
}

// matchesAny reports whether one of the If-None-Match fields names etag.
func matchesAny(fields []string, etag string) bool {
	for _, field := range fields {
		if matches(field, etag) {
			return true
		}
	}
	return false
}

// matches reports whether an If-None-Match field (RFC 9110, section 13.1.2) names etag, by weak comparison. The field is
// "*" or a list of entity tags; whatever follows something else is ignored. It takes one pass and no memory.
func matches(field, etag string) bool {
	if strings.Trim(field, " \t") == "*" {
		return true
	}
	for {
		field = strings.TrimLeft(field, " \t,") // a recipient ignores empty list elements
		field = strings.TrimPrefix(field, "W/")
		end := tagEnd(field)
		if end == 0 {
			return false
		}
		tag, rest := field[:end], strings.TrimLeft(field[end:], " \t")
		if rest != "" && rest[0] != ',' {
			return false
		}
		if tag == etag {
			return true
		}
		field = rest
	}
}

// tagEnd returns the length of the quoted tag at the beginning of s, or 0.
func tagEnd(s string) int {
	if s == "" || s[0] != '"' {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c <= ' ', c == 0x7f:
			return 0
		}
	}
	return 0
}
