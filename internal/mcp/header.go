package mcp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
)

// The headers in which a request repeats what its body says, so that proxies can go by them. A server that reads the body must
// refuse a request whose headers say something else: otherwise a proxy lets pass what it would refuse.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// plain returns the value of a header that stands there once, or false if it is missing, stands there twice, or has
// characters other than ASCII.
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

// encoded is plain for a header whose value may be Base64 of UTF-8, between markers.
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

// checkVersion compares the version in the header, which the server knows, with the message's.
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
