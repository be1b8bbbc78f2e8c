// Package response sends the answer to one request of the Model Context Protocol over HTTP. The answer is JSON or, if messages come before it, the
// last event of a stream.
package response

import (
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/web"
)

// These are the parts of an event around its message.
const (
	eventHead = "event: message\ndata: "
	eventTail = "\n\n"
)

// A Response is the response to a request. It is a protocol.Transport.
type Response struct {
	*web.Exchange
	streaming bool
	event     []byte
}

var _ protocol.Transport = (*Response)(nil)

// ID returns the id of the request.
func (x *Response) ID() string { return web.RequestID(x.Context()) }

// Notify sends a notification. The first one starts the stream.
func (x *Response) Notify(message []byte) error {
	if !x.streaming {
		x.StreamEvents()
		x.streaming = true
	}
	x.event = append(append(append(x.event[:0], eventHead...), message...), eventTail...)
	if _, err := x.Write(x.event); err != nil {
		return err
	}
	return x.FlushError()
}

// Answer sends the answer. In a stream, the status has already been sent.
func (x *Response) Answer(status int, a protocol.Answer) {
	if a.Failed != nil {
		x.SetFailure(a.Failed)
	}
	switch {
	case a.Sent:
	case a.Text == nil && !x.streaming: // the client has cancelled the request: a stream that ends without an answer
		x.StreamEvents()
	case a.Text == nil:
	case x.streaming:
		x.end(a)
	case a.Page == nil:
		x.Send(status, a.Text)
	default:
		x.Send(status, a.Text, a.Page, a.Tail)
	}
}

// end sends the answer as the last event. It is not copied, as it may be large.
func (x *Response) end(a protocol.Answer) {
	for _, part := range [][]byte{[]byte(eventHead), a.Text, a.Page, a.Tail, []byte(eventTail)} {
		if len(part) == 0 {
			continue
		}
		if _, err := x.Write(part); err != nil {
			return // the client is gone, so there is nobody left to tell
		}
	}
	_ = x.FlushError()
}

// Event sends a message as an event. The message must be on one line.
func Event(x *web.Exchange, message []byte) error {
	event := make([]byte, 0, len(eventHead)+len(message)+len(eventTail))
	if _, err := x.Write(append(append(append(event, eventHead...), message...), eventTail...)); err != nil {
		return err
	}
	return x.FlushError()
}

// Comment sends a comment, to show that the connection is alive.
func Comment(x *web.Exchange) error {
	if _, err := x.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return x.FlushError()
}

// AcceptsEvents reports whether a client accepts a stream of events.
func AcceptsEvents(h http.Header) bool {
	for _, accept := range h["Accept"] {
		if strings.Contains(strings.ToLower(accept), "text/event-stream") {
			return true
		}
	}
	return false
}
