// Package trace reads and writes the headers of W3C Trace Context, and carries a trace from a request into its calls, and from those to the
// services that they ask. It does not depend on any package that records traces.
package trace

import (
	"context"
	"encoding/hex"
	"strings"
)

const (
	// length is the length of a traceparent of version 00, and maxLength the longest one of a later version.
	length    = len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	maxLength = 256
	// maxState is the longest tracestate.
	maxState = 512
	// sampled is the flag that says that the caller records the trace.
	sampled = 1
)

// A Parent is a caller's span: the parent of the request's span.
type Parent struct {
	Trace [16]byte
	Span  [8]byte
	// Sampled is whether the caller records the trace.
	Sampled bool
	// State is the tracestate, in which tracing systems pass on data of their own: at most 512 bytes, not checked otherwise.
	State string
}

// Parse reads a traceparent and a tracestate. ok is false if the traceparent is not valid. A tracestate that is too long is left out.
func Parse(parent, state string) (p Parent, ok bool) {
	if len(parent) < length || len(parent) > maxLength || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return Parent{}, false
	}
	var version, flags [1]byte
	for _, field := range []struct {
		to   []byte
		text string
	}{{version[:], parent[:2]}, {p.Trace[:], parent[3:35]}, {p.Span[:], parent[36:52]}, {flags[:], parent[53:length]}} {
		if _, err := hex.Decode(field.to, []byte(field.text)); err != nil || strings.ToLower(field.text) != field.text {
			return Parent{}, false
		}
	}
	longer := len(parent) > length
	if version[0] == 0xff || version[0] == 0 && longer || longer && parent[length] != '-' || p.Trace == [16]byte{} || p.Span == [8]byte{} {
		return Parent{}, false
	}
	if p.Sampled = flags[0]&sampled != 0; len(state) <= maxState {
		p.State = state
	}
	return p, true
}

// Format returns the traceparent of a recorded span.
func Format(trace [16]byte, span [8]byte) string {
	return "00-" + hex.EncodeToString(trace[:]) + "-" + hex.EncodeToString(span[:]) + "-01"
}

// A Request has what a request says about the trace that it is part of, and what is recorded of it. It is for one goroutine at a time.
type Request struct {
	// Parent and State are the traceparent and the tracestate of its headers, as they came.
	Parent, State string
	// Message is the MCP message in the request, if it has a method.
	Message Message
	// Trace and Span are the ids under which the request is recorded. They are empty if it is not recorded, or that is not decided yet.
	Trace, Span string
	// Kept is for the package that records the request.
	Kept any
}

// A Message has what a span says about an MCP message.
type Message struct {
	// Method is a method that the server knows, and ID the message's id without quotes, cut if it is long.
	Method, ID string
	// Version is the version of the protocol. Session identifies the session, but is not its id, which is secret. Both may be empty.
	Version, Session string
	// Parent and State are the traceparent and the tracestate in its _meta, as they came.
	Parent, State string
	// Fault is the JSON-RPC error code of the answer, or 0.
	Fault int64
}

// A RequestKey is the key under which a context has a *Request.
type RequestKey struct{}

// RequestOf returns the request that a context belongs to, or nil.
func RequestOf(ctx context.Context) *Request {
	r, _ := ctx.Value(RequestKey{}).(*Request)
	return r
}

// A Span is a recorded call.
type Span interface {
	// IDs returns the ids of the trace and of the span, in hexadecimal digits.
	IDs() (trace, span string)
	// Next returns the traceparent and the tracestate for the service that the call asks next. The next use that is reported must be the request
	// to that service.
	Next() (parent, state string)
}

// A SpanKey is the key under which a context has a Span.
type SpanKey struct{}

// SpanOf returns the recorded call that a context belongs to, or nil if there is none.
func SpanOf(ctx context.Context) Span {
	s, _ := ctx.Value(SpanKey{}).(Span)
	return s
}
