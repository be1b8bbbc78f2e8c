package session

import (
	"context"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
)

// maxUnsent is how many notifications of a request wait for a client that reads slowly. More are left out.
const maxUnsent = 16

// A post is the carrier of a request that came over HTTP.
type post struct {
	name     string
	unsent   chan []byte // notifications
	answered chan answer // has room for the only one
}

var _ carrier = (*post)(nil)

func (p *post) id() string { return p.name }

// notify hands a notification to the goroutine of the response, or leaves it out.
func (p *post) notify(text []byte) {
	select {
	case p.unsent <- text:
	default:
	}
}

func (p *post) answer(a answer) { p.answered <- a }

// run has a request answered, and sends the answer.
func (s *Sessions) run(x Exchange, q Request, own *session, m rpc.Message) {
	x.SetOperation(text.Clip(string(m.Method), rpc.MaxEcho))
	h := x.Request().Header
	p := &post{name: q.ID, answered: make(chan answer, 1), unsent: make(chan []byte, maxUnsent)}
	r := &request{Message: m, conversation: own.conversation, namespace: own.namespace, call: x.Call(), carrier: p, counted: q.Counted}
	if !AcceptsEvents(h) {
		r.Token = nil // where would reports of progress go?
	}
	r.ctx, r.cancel = context.WithCancelCause(x.Context())
	defer r.cancel(nil)
	own.submit(r)
	out := &response{Exchange: x}
	for {
		select {
		case note := <-p.unsent:
			// Without anybody who reads them, the call is as good as cancelled: its answer could not be had later.
			if err := out.event(note); err != nil {
				r.cancel(err)
			}
			continue
		case a := <-p.answered:
			// What was reported before the answer belongs before it.
			for len(p.unsent) > 0 {
				_ = out.event(<-p.unsent)
			}
			out.end(a)
		}
		return
	}
}

// A response is that of a request: JSON, or a stream of events if there is something to say before the answer.
type response struct {
	Exchange
	streaming bool
	failed    error // of the first write of an event that failed
}

// event sends a message as an event.
func (x *response) event(message []byte) error {
	if !x.streaming {
		beginStream(x.Exchange)
		x.streaming = true
	}
	if x.failed == nil {
		x.failed = sendEvent(x.Exchange, message)
	}
	return x.failed
}

// end sends the answer.
func (x *response) end(a answer) {
	if a.end != nil {
		defer a.end()
	}
	if a.tool != "" {
		x.SetTool(a.tool)
	}
	switch {
	case a.failed != nil:
		x.SetFailure(a.failed)
	case a.fault != nil:
		code := wasmtools.CodeInvalidArguments
		if a.fault.Code == rpc.CodeMethodNotFound {
			code = wasmtools.CodeNotFound
		}
		x.SetFailure(&wasmtools.Error{Code: code})
	}
	switch {
	case a.text == nil && !x.streaming: // cancelled: a stream that ends without an answer
		beginStream(x.Exchange)
	case a.text == nil:
	case x.streaming:
		_ = x.event(a.whole())
	default:
		x.Send(http.StatusOK, a.text, a.page, a.tail)
	}
}

// beginStream makes a response a stream of events.
func beginStream(x Exchange) {
	x.Stream()
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	x.WriteHeader(http.StatusOK)
}

// sendEvent sends a message, which is on one line.
func sendEvent(x Exchange, message []byte) error {
	event := make([]byte, 0, len(message)+32)
	event = append(append(append(event, "event: message\ndata: "...), message...), "\n\n"...)
	if _, err := x.Write(event); err != nil {
		return err
	}
	return x.FlushError()
}

// AcceptsEvents reports whether a client takes a stream of events.
func AcceptsEvents(h http.Header) bool {
	for _, accept := range h["Accept"] {
		if strings.Contains(strings.ToLower(accept), "text/event-stream") {
			return true
		}
	}
	return false
}
