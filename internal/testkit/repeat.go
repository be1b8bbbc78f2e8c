package testkit

import (
	"bytes"
	"io"
	"net/http"
)

// A Repeated is a request that can be served over and over without a cost of its own, so that a measurement is of the handler alone.
type Repeated struct {
	// Written is how many bytes of bodies the handler has written, of all answers together.
	Written int

	request *http.Request
	text    []byte
	body    *bytes.Reader // nil if the request has no body
	header  http.Header
	status  int
}

var _ http.ResponseWriter = (*Repeated)(nil)

// Repeat returns a request that reads the body of r again each time. r must not be used for anything else.
func Repeat(r *http.Request) *Repeated {
	p := &Repeated{request: r, header: http.Header{}}
	if r.ContentLength > 0 {
		p.text, _ = io.ReadAll(r.Body)
		p.body = bytes.NewReader(p.text)
		r.Body = io.NopCloser(p.body)
	}
	return p
}

// Serve makes h serve the request, and returns the status.
func (p *Repeated) Serve(h http.Handler) int {
	if p.body != nil {
		p.body.Reset(p.text)
	}
	clear(p.header)
	h.ServeHTTP(p, p.request)
	return p.status
}

// Header returns the header of the answer.
func (p *Repeated) Header() http.Header { return p.header }

// WriteHeader records the status.
func (p *Repeated) WriteHeader(status int) { p.status = status }

// Write counts the bytes.
func (p *Repeated) Write(b []byte) (int, error) {
	p.Written += len(b)
	return len(b), nil
}
