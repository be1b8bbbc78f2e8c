// Package rpc reads and writes the JSON-RPC messages of the Model Context Protocol, for all transports. It knows neither
// tools nor HTTP.
package rpc

import (
	"bytes"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// maxKey is the largest size of a request's id and of a progress token, in bytes: streams hold theirs for hours.
const maxKey = 256

// These are members of _meta, in requests and results.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServer       = "io.modelcontextprotocol/serverInfo"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaToken        = "progressToken"
	metaParent       = "traceparent"
	metaState        = "tracestate"
)

// A Message is a client's request or notification, or its response to a request, although our servers send none. Its fields are parts of its text, as
// they were written. A part that the text lacks is nil.
type Message struct {
	ID     []byte // a string or an integer; nil for a notification
	Method []byte // without its quotes; nil for a response
	Params []byte // an object

	Name          []byte // without its quotes
	Arguments     []byte // any JSON
	Cursor        []byte // any JSON
	Notifications []byte // any JSON
	Version       []byte // the version that initialize asks for: any JSON
	RequestID     []byte // the id of a cancelled request: any JSON

	Meta         []byte // an object
	MetaVersion  []byte // the version of the protocol, without its quotes
	Capabilities []byte // an object
	Token        []byte // the progress token: a string or an integer
	Parent       []byte // traceparent and tracestate, any JSON: nobody refuses a message because of them
	State        []byte
}

// Parse parses a message. The fault says what is wrong with it. Even then, the message has its id, if that is valid. Parse checks only what the
// transport needs: which params are required depends on the method.
func (m *Message) Parse(text []byte) *Fault {
	*m = Message{}
	if err := jsontree.Check(text, jsontree.MaxCheckDepth); err != nil {
		return &Fault{Code: CodeParse, Message: "The message is not JSON: " + err.Error()}
	}
	members, isObject := jsontree.ReadMembers(text)
	if !isObject {
		if bytes.TrimLeft(text, " \t\r\n")[0] == '[' {
			return Invalid("Batches are not supported; send each message separately")
		}
		return Invalid("The message is not an object")
	}
	var jsonrpc, id, method, answer []byte
	var wrong *Fault
	for {
		name, value, more := members.Next()
		if !more {
			break
		}
		var to *[]byte
		switch string(name) {
		case "jsonrpc":
			to = &jsonrpc
		case "id":
			to = &id
		case "method":
			to = &method
		case "params":
			to = &m.Params
		case "result", "error":
			to = &answer
		default:
			continue
		}
		if *to != nil {
			wrong = Invalid("The message contains " + string(name) + " twice")
		}
		*to = value
	}
	if isKey(id) {
		m.ID = id
	} else if id != nil {
		return Invalid("The id must be a string or an integer, of at most 256 bytes")
	}
	switch {
	case wrong != nil:
		return wrong
	case string(jsonrpc) != `"2.0"`:
		return Invalid(`The message has no "jsonrpc": "2.0"`)
	case method == nil && answer != nil:
		return nil
	case !isString(method):
		return Invalid("The method must be a string")
	}
	switch m.Method = content(method); {
	case m.Params == nil:
		return nil
	case m.Params[0] != '{':
		return InvalidParams("The params must be an object")
	}
	return m.readParams()
}

// readParams parses the params.
func (m *Message) readParams() *Fault {
	var name []byte
	members, _ := jsontree.ReadMembers(m.Params)
	for {
		key, value, more := members.Next()
		if !more {
			break
		}
		var to *[]byte
		switch string(key) {
		case "name":
			to = &name
		case "arguments":
			to = &m.Arguments
		case "cursor":
			to = &m.Cursor
		case "notifications":
			to = &m.Notifications
		case "protocolVersion":
			to = &m.Version
		case "requestId":
			to = &m.RequestID
		case "_meta":
			to = &m.Meta
		default:
			continue
		}
		if *to != nil {
			return InvalidParams("The params contain " + string(key) + " twice")
		}
		*to = value
	}
	if name != nil && !isString(name) {
		return InvalidParams("The name must be a string")
	}
	if m.Name = content(name); m.Meta == nil {
		return nil
	}
	return m.readMeta()
}

// readMeta parses the params' _meta.
func (m *Message) readMeta() *Fault {
	members, isObject := jsontree.ReadMembers(m.Meta)
	if !isObject {
		return InvalidParams("The params' _meta must be an object")
	}
	for {
		key, value, more := members.Next()
		if !more {
			return nil
		}
		var to *[]byte
		ok, want := false, ""
		switch string(key) {
		case MetaVersion:
			to, ok, want = &m.MetaVersion, isString(value), "a string"
			value = content(value)
		case MetaCapabilities:
			to, ok, want = &m.Capabilities, value[0] == '{', "an object"
		case metaParent:
			m.Parent = value
			continue
		case metaState:
			m.State = value
			continue
		case metaToken:
			to, ok, want = &m.Token, isKey(value), "a string or an integer, of at most 256 bytes"
		default:
			continue
		}
		switch {
		case !ok:
			return InvalidParams("The _meta's " + string(key) + " must be " + want)
		case *to != nil:
			return InvalidParams("The _meta contains " + string(key) + " twice")
		}
		*to = value
	}
}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// isKey reports whether a value can be an id or a progress token.
func isKey(value []byte) bool {
	if len(value) == 0 || len(value) > maxKey {
		return false
	}
	if value[0] == '"' {
		return true
	}
	digits := bytes.TrimPrefix(value, []byte("-"))
	return len(digits) > 0 && !bytes.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
}

// String returns a value of a message as a string, or false if it is not a string.
func String(value []byte) (s string, ok bool) {
	if !isString(value) {
		return "", false
	}
	return string(content(value)), true
}

// content returns the content of a JSON string, or nil if value is not one.
func content(value []byte) []byte {
	switch {
	case !isString(value):
		return nil
	case bytes.IndexByte(value, '\\') < 0:
		return value[1 : len(value)-1 : len(value)-1]
	}
	return append([]byte{}, jsontree.DecodeString(value)...)
}
