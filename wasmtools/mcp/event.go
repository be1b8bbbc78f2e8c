package mcp

import (
	"net/http"

	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// headers are values that responses share. They never change.
type headers struct {
	events, noStore, unbuffered []string
}

func newHeaders() headers {
	return headers{events: []string{"text/event-stream"}, noStore: []string{"no-store"}, unbuffered: []string{"no"}}
}

// begin makes the response a stream of events.
func (h *headers) begin(x *web.Exchange) {
	x.Stream()
	to := x.Header()
	to["Content-Type"] = h.events
	to["Cache-Control"] = h.noStore
	to["X-Accel-Buffering"] = h.unbuffered // nginx would hold events back
	x.WriteHeader(http.StatusOK)
}

// The parts of an event around its message.
const (
	eventHead = "event: message\ndata: "
	eventTail = "\n\n"
)

// sendEvent sends event, which is eventHead and a message on one line. It may change event.
func sendEvent(x *web.Exchange, event []byte) error {
	if _, err := x.Write(append(event, eventTail...)); err != nil {
		return err
	}
	return x.FlushError()
}
