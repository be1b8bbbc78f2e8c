package web

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Document is a response that clients may cache and revalidate: its content and header values. It never changes.
type Document struct {
	content Content
	form    // the uncompressed form
	packed  func() *packed
	kind    []string // its Content-Type; if nil, JSON
	common  bool     // the document is the same for all callers
}

// A form is the header values that depend on the document's encoding.
type form struct {
	etag   string // strong, quoted
	tag    []string
	length []string
}

func newForm(etag string, size int) form {
	return form{etag: etag, tag: []string{etag}, length: []string{strconv.Itoa(size)}}
}

// Content is the content of a document. It never changes. WriteTo may be called concurrently.
type Content interface {
	Size() int
	io.WriterTo
}

// NewDocument returns a document. The body must not change afterwards; etag is a strong tag with its quotes.
func NewDocument(body []byte, etag string) *Document { return NewDocumentOf(whole(body), etag, nil) }

// NewDocumentOf is NewDocument for a content that is put together when it is sent. The compressed form is made for the first client that accepts it,
// and others wait for it. It is kept as long as the document if keep agrees to that many more bytes. Otherwise the document is never sent compressed.
// A nil keep always agrees.
func NewDocumentOf(c Content, etag string, keep func(bytes int) bool) *Document {
	d := &Document{content: c, form: newForm(etag, c.Size())}
	d.packed = sync.OnceValue(func() *packed { return pack(d, packLevel, keep) })
	return d
}

// whole is content in one piece.
type whole []byte

// Size returns the number of bytes.
func (t whole) Size() int { return len(t) }

// WriteTo writes the text.
func (t whole) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(t)
	return int64(n), err
}

// partSize is how many bytes of a long document are sent at a time.
const partSize = 32 << 10

// writers are reused so that sending a list takes no memory.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, partSize) }}

// send answers GET and HEAD with the document.
func (d *Document) send(x *Exchange) {
	h := x.Header()
	h["Cache-Control"] = x.mux.fixed.noCache
	f, p := &d.form, (*packed)(nil)
	isLarge := d.content.Size() >= minPacked
	a := x.in.admission
	switch isFor := !d.common && a != nil && len(a.dependencies) > 0; {
	case isFor && isLarge:
		vary(h, x.mux.fixed.varies)
	case isFor:
		vary(h, x.mux.fixed.varies[:1])
	case isLarge:
		vary(h, x.mux.fixed.varies[1:])
	}
	known := x.request.Header["If-None-Match"]
	switch {
	case matchesAny(known, d.etag): // the tag of either form will do, since the content is the same
		f = &d.form
	case isLarge && takesGzip(x.request.Header["Accept-Encoding"]):
		if p = d.packed(); p != nil {
			f = &p.form
		}
	}
	h["Etag"] = f.tag
	if matchesAny(known, f.etag) {
		x.WriteHeader(http.StatusNotModified)
		return
	}
	if h["Content-Type"] = d.kind; d.kind == nil {
		h["Content-Type"] = x.mux.fixed.json
	}
	h["Content-Length"] = f.length
	if p != nil {
		h["Content-Encoding"] = x.mux.fixed.gzip
	}
	x.WriteHeader(http.StatusOK)
	switch {
	case x.request.Method == http.MethodHead:
	case p != nil:
		_, _ = x.Write(p.body)
	case d.content.Size() < partSize:
		_, _ = d.content.WriteTo(x)
	default:
		w := writers.Get().(*bufio.Writer)
		defer writers.Put(w)
		w.Reset(x)
		if _, err := d.content.WriteTo(w); err == nil {
			_ = w.Flush()
		}
		w.Reset(nil)
	}
}

// vary adds names of request headers, on which the response depends, to its Vary header.
func vary(h http.Header, names []string) {
	if others := h["Vary"]; len(others) > 0 {
		names = append(slices.Clip(others), names...)
	}
	h["Vary"] = names[:len(names):len(names)]
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

// matches reports whether an If-None-Match field (RFC 9110, section 13.1.2) names etag, by weak comparison. The field is "*" or a list of entity
// tags. At the first invalid element, the rest is ignored. It takes one pass and no memory.
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
