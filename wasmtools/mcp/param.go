package mcp

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
)

// headerParam begins the names of the headers that repeat arguments.
const headerParam = "Mcp-Param-"

// maxInteger is the largest integer that all clients can tell from its neighbours.
const maxInteger = 1<<53 - 1

// checkParams compares the arguments that a tool wants in headers with them. A value of the wrong type is left to the tool's
// schema, which refuses it.
func checkParams(params []toolset.Header, arguments []byte, h http.Header) *rpc.Fault {
	for _, p := range params {
		key := http.CanonicalHeaderKey(headerParam + p.Name)
		value := member(arguments, p.Path)
		if value == nil || string(value) == "null" {
			if len(h[key]) > 0 {
				return rpc.Mismatch(key + " has a value, and the arguments have none")
			}
			continue
		}
		header, ok := encoded(h, key)
		switch {
		case !ok:
			return rpc.Mismatch(key + " is missing or not well-formed")
		case !says(header, p.Type, value):
			return rpc.Mismatch(key + " is not the value in the arguments")
		}
	}
	return nil
}

// member returns the value that a path leads to in an object, or nil.
func member(object []byte, path []string) []byte {
	for _, name := range path {
		if object == nil {
			return nil
		}
		members, isObject := jsontree.ReadMembers(object)
		object = nil
		for isObject {
			key, value, more := members.Next()
			if !more {
				break
			}
			if string(key) == name {
				object = value
			}
		}
	}
	return object
}

// says reports whether a header has a value of a type.
func says(header, typeName string, value []byte) bool {
	switch {
	case typeName == "string" && value[0] == '"':
		return header == jsontree.DecodeString(value)
	case typeName == "boolean" && (value[0] == 't' || value[0] == 'f'):
		return header == string(value)
	case typeName == "integer" && (value[0] == '-' || '0' <= value[0] && value[0] <= '9'):
		given, ok := integer(header)
		own, isInteger := integer(string(value))
		return header == string(value) || ok && isInteger && given == own
	}
	return true
}

// integer returns the number that a text is: 42, also where it is 42.0.
func integer(s string) (f float64, ok bool) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f >= -maxInteger && f <= maxInteger
}
