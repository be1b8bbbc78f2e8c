package web

import (
	"context"
	"time"

	"github.com/toolsrv/toolsrv/internal/trace"
)

// maxRequestID is the largest length of a client's X-Request-Id.
const maxRequestID = 64

// A requestContext is an exchange as a context: the context of its request, with the id.
type requestContext Exchange

var _ context.Context = (*requestContext)(nil)

func (c *requestContext) Deadline() (time.Time, bool) { return c.request.Context().Deadline() }
func (c *requestContext) Done() <-chan struct{}       { return c.request.Context().Done() }
func (c *requestContext) Err() error                  { return c.request.Context().Err() }

type requestIDKey struct{}

func (c *requestContext) Value(key any) any {
	switch key {
	case requestIDKey{}:
		return c.id[0]
	case trace.RequestKey{}:
		return c.trace
	}
	return c.request.Context().Value(key)
}

// RequestID returns the id of the request on behalf of which a tool is called: the X-Request-Id of the response. It is empty for a context that no
// Mux has made.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

func isRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
