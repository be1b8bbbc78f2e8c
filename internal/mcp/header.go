package mcp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
)

// A request repeats parts of its body in these headers, so that proxies can decide by them. The server must refuse a request whose headers and body
// differ. Otherwise a client could get a request past a proxy that would have refused it.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// plain returns the value of a header. It returns false if the header is missing, appears twice, or has characters other than ASCII.
func plain(h http.Header, key string) (value string, ok bool) {
	values := h[key]
	if len(values) != 1 {
		return "", false
	}
	for i := range len(values[0]) {
		if c := values[0][i]; c < ' ' && c != '\t' || c > '~' {
			return "", false
		}
	}
	return values[0], true
}

// encoded is like plain, for a header whose value may be UTF-8 in Base64, between markers.
func encoded(h http.Header, key string) (value string, ok bool) {
	if value, ok = plain(h, key); !ok {
		return "", false
	}
	inner, isEncoded := strings.CutPrefix(value, "=?base64?")
	if isEncoded {
		inner, isEncoded = strings.CutSuffix(inner, "?=")
	}
	if !isEncoded {
		return value, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(decoded), err == nil
}

// checkVersion compares the version in the header, which the server speaks, with the version in the message.
func checkVersion(m *rpc.Message, header string) *rpc.Fault {
	switch {
	case m.MetaVersion == nil:
		return rpc.InvalidParams("The request has no _meta with " + rpc.MetaVersion)
	case m.Capabilities == nil:
		return rpc.InvalidParams("The request has no _meta with " + rpc.MetaCapabilities)
	case string(m.MetaVersion) != header:
		return rpc.Mismatch("MCP-Protocol-Version is not the version of the request's _meta")
	}
	return nil
}

// checkMethod compares the header with the message's method.
func checkMethod(m *rpc.Message, h http.Header) *rpc.Fault {
	if value, ok := plain(h, headerMethod); !ok {
		return rpc.Mismatch("Mcp-Method is missing or not well-formed")
	} else if value != string(m.Method) {
		return rpc.Mismatch("Mcp-Method is not the method of the request")
	}
	return nil
}
