package http

import (
	"strconv"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// A StatusError says that a server answered with a status that does not mean success.
type StatusError struct {
	// Status is the status code, such as 404.
	Status int
	// URL is where the answer came from.
	URL string
	// Body is the answer's.
	Body []byte
}

// Error names the server and the status. It contains neither the rest of the URL nor the body, which may have what clients should not see.
func (e *StatusError) Error() string {
	return origin(e.URL) + " has answered with status " + strconv.Itoa(e.Status)
}

// Unwrap returns what clients see where a tool returns the error: the code "bad_status" and the status 502.
func (e *StatusError) Unwrap() error { return &toolsrv.Error{Code: "bad_status", Status: 502} }

// origin returns the beginning of a URL, up to its path.
func origin(url string) string {
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		return "the server"
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return url[:strings.Index(url, "://")+3] + rest
}
