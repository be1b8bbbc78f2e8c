package web

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
)

// An Exchange is a ResponseWriter that http.ResponseController finds its way through.
var (
	_ http.ResponseWriter = (*Exchange)(nil)
	_ http.Flusher        = (*Exchange)(nil)
	_ http.Hijacker       = (*Exchange)(nil)
)

// Header returns the header of the response.
func (x *Exchange) Header() http.Header { return x.w.Header() }

// WriteHeader sends the header with a status. Only the first one counts, as in net/http; statuses from 100 to 199 but
// 101 may come before it.
func (x *Exchange) WriteHeader(status int) {
	x.w.WriteHeader(status)
	if x.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		x.status = status
	}
}

// Write writes a part of the response's body, after the header with the status 200 where none was sent.
func (x *Exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.stream != nil {
		return x.stream.write(x.mux, x.w, p)
	}
	return x.w.Write(p)
}

// FlushError sends what was written so far.
func (x *Exchange) FlushError() error {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.stream != nil {
		return x.stream.flush(x.mux)
	}
	return http.NewResponseController(x.w).Flush()
}

// Flush does as FlushError, for handlers that ask for an http.Flusher.
func (x *Exchange) Flush() { _ = x.FlushError() }

// Hijack refuses: the log, the limits and the end of the service would lose sight of the connection.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, fmt.Errorf("take over the connection: %w", http.ErrNotSupported)
}

// Unwrap returns the ResponseWriter of the server, for http.ResponseController.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.w }
