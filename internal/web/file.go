package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// NewFile returns a document that is the same for all callers, such as a page or a script. kind is its Content-Type. The body must not change
// afterwards.
func NewFile(kind string, body []byte) *Document {
	d := &Document{content: whole(body), form: newForm(tagOf(body), len(body)), kind: []string{kind}, common: true}
	d.packed = sync.OnceValue(func() *packed { return pack(d, gzip.BestCompression, nil) })
	return d
}

// NewPackedFile is NewFile for a gzip-compressed body, which most clients get unchanged. The body is unpacked for the first client that does not
// accept gzip, and the result is kept. The body must be one of the program's own files, since its stated length is trusted.
func NewPackedFile(kind string, body []byte) (*Document, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("read a compressed file: %w", err)
	}
	size := int(binary.LittleEndian.Uint32(body[len(body)-4:])) // gzip stores the length here, for less than 4 GiB
	text := sync.OnceValues(func() ([]byte, error) { return io.ReadAll(r) })
	d := &Document{content: &unpacked{size, text}, form: newForm(tagOf(body), size), kind: []string{kind}, common: true}
	d.packed = func() *packed { return &packed{newForm(packedTag(d.etag), len(body)), body} }
	return d, nil
}

// unpacked is a content that is unpacked when it is first written.
type unpacked struct {
	size int
	text func() ([]byte, error)
}

// Size returns the number of bytes.
func (u *unpacked) Size() int { return u.size }

// WriteTo writes the content.
func (u *unpacked) WriteTo(w io.Writer) (int64, error) {
	text, err := u.text()
	if err != nil {
		return 0, fmt.Errorf("unpack a file: %w", err)
	}
	n, err := w.Write(text)
	return int64(n), err
}

// tagOf returns the strong tag of content.
func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
}
