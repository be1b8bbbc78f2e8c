// Package transport lets libraries that take a client of net/http send their requests through the host, as package http does for
// tools. It makes a module 3 MB larger, and is not for TinyGo.
package transport

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	toolsrvhttp "github.com/toolsrv/toolsrv/sdk/go/http"
)

// A Transport is a [http.RoundTripper] for one call. The host does not follow redirects for it: the client does.
type Transport struct {
	Call *toolsrv.Call
}

var _ http.RoundTripper = Transport{}

// Client returns a client for one call.
func Client(c *toolsrv.Call) *http.Client { return &http.Client{Transport: Transport{c}} }

// connection has the header fields that net/http's own transport sets; here the host sets them.
var connection = []string{"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// RoundTrip sends a request and returns the answer, whose body is whole by then. The deadline of the request's context applies; since the
// call waits in the host, the context can't cancel what was sent. The error is a [*toolsrv.Failure], or the context's, or that of the
// request's body.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Host != "" && r.Host != r.URL.Host {
		return nil, &toolsrv.Failure{Code: "invalid", Message: "the request's Host is " + r.Host + ": the host sends the URL's; leave it out"}
	}
	target := *r.URL
	if target.Path == "" {
		target.Path = "/"
	}
	request := toolsrvhttp.Request{Method: r.Method, URL: target.String(), Header: toolsrvhttp.Header(r.Header.Clone()), NoRedirects: true}
	for _, name := range connection {
		request.Header.Del(name)
	}
	if deadline, ok := r.Context().Deadline(); ok {
		request.Timeout = max(time.Millisecond, time.Until(deadline))
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		request.Body = body
	}
	answer, err := toolsrvhttp.Do(t.Call, request)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header(answer.Header),
		Body:          io.NopCloser(bytes.NewReader(answer.Body)),
		ContentLength: int64(len(answer.Body)),
		Request:       r,
	}, nil
}
