package web

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
)

var (
	_ http.ResponseWriter = (*Exchange)(nil)
	_ http.Flusher        = (*Exchange)(nil)
	_ http.Hijacker       = (*Exchange)(nil)
)

// Header returns the header of the response.
func (x *Exchange) Header() http.Header { return x.w.Header() }

// WriteHeader sends the header with a status. As in net/http, only the first one counts, not including informational ones
// (100 to 199, except 101).
func (x *Exchange) WriteHeader(status int) {
	x.w.WriteHeader(status)
	if x.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		x.status = int32(status)
	}
}

// Write writes a part of the body. The first Write sends the header with the status 200, if WriteHeader did not.
func (x *Exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.stream != nil {
		return x.stream.write(x.mux, x.w, p)
	}
	return x.w.Write(p)
}

// FlushError sends what has been written so far.
func (x *Exchange) FlushError() error {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.stream != nil {
		return x.stream.flush(x.mux)
	}
	return http.NewResponseController(x.w).Flush()
}

// Flush is FlushError for handlers that look for an http.Flusher.
func (x *Exchange) Flush() { _ = x.FlushError() }

// Hijack fails. A connection that a door takes over would escape the log, the limits and the end of the service.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, fmt.Errorf("take over the connection: %w", http.ErrNotSupported)
}

// Unwrap returns the ResponseWriter of the server, for http.ResponseController.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.w }
