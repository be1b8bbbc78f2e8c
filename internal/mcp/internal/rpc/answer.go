package rpc

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
)

// The codes of JSON-RPC, and those that the protocol adds. The lines above each are its rows in docs/generated/mcp-errors.md: the status, and what
// has happened. TestErrorsPage in internal/mcp writes the page.
const (
	// 400 | the body is not JSON, or did not arrive whole
	CodeParse = -32700
	// 400 | the body is not a request, or a batch
	// 400 | before 2026-07-28: there is no `Mcp-Session-Id`, and the request is not `initialize`; or a GET or DELETE of 2026-07-28
	// 406 | before 2026-07-28: a GET that does not accept `text/event-stream`
	// 408, 413, 415 | the body came too slowly, is too large, or is not JSON; `data` has the `code` of [REST](errors.md)
	CodeInvalidRequest = -32600
	// 404 | there is no such method
	CodeMethodNotFound = -32601
	// 200 | there is no tool of this name, or the caller may not call it; or the cursor is wrong
	// 400 | `_meta` or another member of the params is missing or has the wrong type
	CodeInvalidParams = -32602
	// 200 | the service failed; `data` has the `request_id` for the operator. Or, with the `code` `not_ready` in `data`: tools are still being read, and none has this name yet
	// 503 | too many streams are open; or a large call is refused, because there is no memory for it or its tool is disabled
	// 503 | before 2026-07-28: each session that is held has calls
	CodeInternal = -32603
	// 400 | a header is missing, or says something else than the body
	CodeHeaderMismatch = -32020
	// 400 | the version is not spoken here; `data` has those that are
	CodeUnsupportedVersion = -32022
)

// A Fault is an error of the protocol: what is wrong with a message, rather than with a call.
type Fault struct {
	Code    int64
	Message string
	Data    json.RawMessage // nil: none
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// Invalid returns the fault for a message that is not a valid request.
func Invalid(message string) *Fault { return &Fault{Code: CodeInvalidRequest, Message: message} }

// InvalidParams returns the fault for params that the method does not accept.
func InvalidParams(message string) *Fault { return &Fault{Code: CodeInvalidParams, Message: message} }

// Mismatch returns the fault for a header that is missing, malformed or different from the body.
func Mismatch(message string) *Fault {
	return &Fault{Code: CodeHeaderMismatch, Message: "Header mismatch: " + message}
}

// NoMethod returns the fault for a method that the server does not have.
func NoMethod() *Fault { return &Fault{Code: CodeMethodNotFound, Message: "Method not found"} }

// Unsupported returns the fault for a version that the server does not support. supported lists those that it does.
func Unsupported(supported []string, requested string) *Fault {
	data, _ := json.Marshal(struct { // strings only
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{supported, text.Clip(requested, MaxEcho)})
	return &Fault{Code: CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: data}
}

// MaxEcho is how many bytes of a client's text a fault or the log repeats.
const MaxEcho = 64

// Breather is the shortest time between two notifications of a change. A hundred files that are dropped in at once are one change
// to a client.
const Breather = 250 * time.Millisecond

// KeepAlive is how often a stream without news sends a comment, so that neither a proxy nor the client takes the connection for dead.
// The caller's token is checked again then.
const KeepAlive = 25 * time.Second

// These constants say how long a client may cache an answer, in milliseconds. A client that listens is notified of changes at once. The others
// learn of a new tool after this time.
const (
	FreshList     = 5_000
	FreshDiscover = 60_000
)

// Scope says who may use a cached answer: clients that had to identify themselves may see different tools.
func Scope(everybody bool) string {
	if everybody {
		return "public"
	}
	return "private"
}

// An Implementation is how a server describes itself.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// AppendHead appends the beginning of a response, up to its result or its error. A nil id is left out.
func AppendHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != nil {
		dst = append(dst, `"id":`...)
		dst = append(dst, id...)
		dst = append(dst, ',')
	}
	return dst
}

// AppendFault appends a whole response with a fault.
func AppendFault(dst, id []byte, f *Fault) []byte {
	return AppendError(AppendHead(dst, id), f)
}

// AppendError appends a fault after the head of a response.
func AppendError(dst []byte, f *Fault) []byte {
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, f.Code, 10)
	dst = append(dst, `,"message":`...)
	dst = append(dst, jsontree.Quote(f.Message)...)
	if f.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, f.Data...)
	}
	return append(dst, "}}"...)
}

// AppendProgress appends a notification of a request's progress. A total of 0 and an empty message are left out.
func AppendProgress(dst, token []byte, done, total float64, message string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	dst = append(dst, token...)
	dst = appendNumber(append(dst, `,"progress":`...), done)
	if total > 0 {
		dst = appendNumber(append(dst, `,"total":`...), total)
	}
	if message != "" {
		dst = append(append(dst, `,"message":`...), jsontree.Quote(message)...)
	}
	return append(dst, "}}"...)
}

// appendNumber appends a finite number as package json does.
func appendNumber(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// AppendAcknowledged appends the first notification of a subscription, which says what the subscription includes.
func AppendAcknowledged(dst, subscription []byte, tools bool) []byte {
	filter := "{}"
	if tools {
		filter = `{"toolsListChanged":true}`
	}
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":`+filter+`,`...)
	return append(appendSubscription(dst, subscription), "}}"...)
}

// AppendListChanged appends the notification that the list of tools has changed. subscription is the id of the request that
// asked for it, or nil in the versions that have no subscriptions.
func AppendListChanged(dst, subscription []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"`...)
	if subscription != nil {
		dst = append(appendSubscription(append(dst, `,"params":{`...), subscription), '}')
	}
	return append(dst, '}')
}

// AppendUnsubscribed appends the response that ends a subscription.
func AppendUnsubscribed(dst, subscription []byte) []byte {
	dst = append(AppendHead(dst, subscription), `"result":{"resultType":"complete",`...)
	return append(appendSubscription(dst, subscription), "}}"...)
}

func appendSubscription(dst, subscription []byte) []byte {
	dst = append(dst, `"_meta":{"`+MetaSubscription+`":`...)
	return append(append(dst, subscription...), '}')
}

// CheckCall returns the fault in the params of a call, or nil. Missing arguments become an empty object.
func (m *Message) CheckCall() *Fault {
	switch {
	case m.Name == nil:
		return InvalidParams("The params have no name")
	case m.Arguments == nil, string(m.Arguments) == "null":
		m.Arguments = []byte("{}")
	case m.Arguments[0] != '{':
		return InvalidParams("The arguments must be an object")
	}
	return nil
}

// PageCursor returns the cursor of a request for a list, or "" for the first page.
func (m *Message) PageCursor() (string, *Fault) {
	if m.Cursor == nil || string(m.Cursor) == "null" {
		return "", nil
	}
	switch cursor, ok := String(m.Cursor); {
	case !ok:
		return "", InvalidParams("The cursor must be a string")
	case cursor == "":
		return "", InvalidParams("Invalid cursor")
	default:
		return cursor, nil
	}
}

// WantsTools reports whether a subscription asks for changes of the list of tools. The server has no other notifications.
func (m *Message) WantsTools() (bool, *Fault) {
	if m.Notifications == nil {
		return false, InvalidParams("The params have no notifications")
	}
	members, isObject := jsontree.ReadMembers(m.Notifications)
	if !isObject {
		return false, InvalidParams("The notifications must be an object")
	}
	wanted := false
	for {
		name, value, more := members.Next()
		if !more {
			return wanted, nil
		}
		if string(name) == "toolsListChanged" {
			if value[0] != 't' && value[0] != 'f' {
				return false, InvalidParams("The notifications' toolsListChanged must be true or false")
			}
			wanted = value[0] == 't'
		}
	}
}
