// Package http sends requests to other servers, as far as the operator lets the tool. The tool declares the addresses that it needs
// ([toolsrv.Needs]), the operator grants them, and the host does the rest: names, connections, TLS, and the headers with secrets that the
// operator has configured.
//
//	answer, err := http.Get(c, "https://api.example.com/v1/rates?base="+url.QueryEscape(base))
//	if err != nil {
//		return nil, err
//	}
//	var rates rates
//	return &rates, answer.JSON(&rates)
//
// An answer is whole when the function returns; the host bounds its size. A server's error is an answer like any other: ask [Response.Err],
// or let [Response.JSON] do so. The error of a function is a [*toolsrv.Failure], whose code is one of the common ones or "tls", "dns",
// "connect" or "redirect".
//
// For libraries that want a client of net/http there is package transport. It makes a module 3 MB larger, and is not for TinyGo.
package http

import (
	"encoding/binary"
	"encoding/json"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/capability"
	"github.com/toolsrv/toolsrv/sdk/go/internal/typed"
)

// A Request is what is sent. Only URL is required.
type Request struct {
	// Method is GET if it is empty.
	Method string
	// URL is absolute: https, or http where that is granted.
	URL string
	// Header has fields beside those that the host sets. The host refuses Host, Connection and other fields about the connection.
	Header Header
	Body   []byte
	// Timeout is how long the request may take, in whole milliseconds, 0 for as long as the call has left. It never extends the call.
	Timeout time.Duration
	// NoRedirects returns a redirect as the answer. Otherwise the host follows as many as the operator allows, each only if the tool itself could
	// have sent a request to its target.
	NoRedirects bool
}

// A Response is a server's answer.
type Response struct {
	// Status is the status code, such as 200.
	Status int
	// URL is where the answer came from, after redirects.
	URL    string
	Header Header
	// Body is the whole body, decompressed. It is the caller's.
	Body []byte
}

// Get sends a GET request to a URL.
func Get(c *toolsrv.Call, url string) (*Response, error) {
	return Do(c, Request{URL: url})
}

// Post posts a body of a media type to a URL.
func Post(c *toolsrv.Call, url, contentType string, body []byte) (*Response, error) {
	return Do(c, Request{Method: "POST", URL: url, Header: Header{"Content-Type": {contentType}}, Body: body})
}

// PostJSON posts v as JSON to a URL.
func PostJSON(c *toolsrv.Call, url string, v any) (*Response, error) {
	body, err := typed.Encode(v)
	if err != nil {
		return nil, &toolsrv.Failure{Code: "invalid", Message: "the body can't be written as JSON: " + err.Error()}
	}
	return Post(c, url, "application/json", body)
}

// head is a request's head as the host reads it.
type head struct {
	Method   string      `json:"method"`
	URL      string      `json:"url"`
	Headers  [][2]string `json:"headers"`
	Timeout  int64       `json:"timeout,omitempty"`
	Redirect string      `json:"redirect,omitempty"`
}

// Do sends a request and returns the answer to it.
func Do(c *toolsrv.Call, r Request) (*Response, error) {
	h := head{Method: r.Method, URL: r.URL, Headers: r.Header.list()}
	if h.Method == "" {
		h.Method = "GET"
	}
	if r.Timeout > 0 {
		h.Timeout = max(1, r.Timeout.Milliseconds())
	}
	if r.NoRedirects {
		h.Redirect = "manual"
	}
	text, err := typed.Encode(h)
	if err != nil {
		return nil, &toolsrv.Failure{Code: "invalid", Message: "the request can't be written as JSON: " + err.Error()}
	}
	answer, err := capability.Send(c, text, r.Body)
	if err != nil {
		return nil, err
	}
	return read(answer)
}

// read reads an answer as the host writes it: the size of the head, the head, the body.
func read(answer []byte) (*Response, error) {
	if len(answer) < 4 {
		return nil, capability.Broken("an answer has no head")
	}
	size := uint64(binary.LittleEndian.Uint32(answer))
	if size > uint64(len(answer)-4) {
		return nil, capability.Broken("an answer ends before its head does")
	}
	var h struct {
		Status  int        `json:"status"`
		URL     string     `json:"url"`
		Headers [][]string `json:"headers"`
	}
	if err := json.Unmarshal(answer[4:4+size], &h); err != nil {
		return nil, capability.Broken("an answer's head: " + err.Error())
	}
	r := &Response{Status: h.Status, URL: h.URL, Header: Header{}, Body: answer[4+size:]}
	for _, field := range h.Headers {
		if len(field) != 2 {
			return nil, capability.Broken("an answer's field is not a name and a value")
		}
		r.Header.Add(field[0], field[1])
	}
	return r, nil
}

// OK reports whether the status means success: 200 to 299.
func (r *Response) OK() bool { return r.Status >= 200 && r.Status <= 299 }

// Err returns nil if the status means success, and otherwise a *[StatusError].
func (r *Response) Err() error {
	if r.OK() {
		return nil
	}
	return &StatusError{Status: r.Status, URL: r.URL, Body: r.Body}
}

// JSON decodes the body into what to points to. It fails as [Response.Err] does if the status does not mean success.
func (r *Response) JSON(to any) error {
	if err := r.Err(); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Body, to); err != nil {
		return &toolsrv.Error{Code: "bad_answer", Status: 502, Message: origin(r.URL) + " sent an unexpected answer: " + err.Error()}
	}
	return nil
}
