package mcp

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
)

// headerParam begins the names of the headers that repeat arguments.
const headerParam = "Mcp-Param-"

// maxInteger is the largest integer that all clients can tell from its neighbours.
const maxInteger = 1<<53 - 1

// checkParams compares arguments with the headers that repeat them. A value of the wrong type is left to the tool's schema, which refuses it.
func checkParams(params []toolset.Header, arguments []byte, h http.Header) *rpc.Fault {
	all := make([]int, len(params))
	for i := range all {
		all[i] = i
	}
	values := make([][]byte, len(params))
	if arguments != nil {
		find(arguments, params, all, 0, values)
	}
	for i, p := range params {
		key := http.CanonicalHeaderKey(headerParam + p.Name)
		value := values[i]
		if value == nil || string(value) == "null" {
			if len(h[key]) > 0 {
				return rpc.Mismatch(key + " has a value, but the argument is missing")
			}
			continue
		}
		header, ok := encoded(h, key)
		switch {
		case !ok:
			return rpc.Mismatch(key + " is missing or not well-formed")
		case !says(header, p.Type, value):
			return rpc.Mismatch(key + " differs from the value in the arguments")
		}
	}
	return nil
}

// find looks for the listed params in an object, and sets their values. depth is the index in their paths of the names of the object's members. It
// reads the object once, since that may be large. If members have the same name, the last one counts.
func find(object []byte, params []toolset.Header, listed []int, depth int, values [][]byte) {
	members, isObject := jsontree.ReadMembers(object)
	for isObject {
		name, value, more := members.Next()
		if !more {
			return
		}
		var below []int
		for _, i := range listed {
			switch path := params[i].Path; {
			case path[depth] != string(name):
			case depth+1 == len(path):
				values[i] = value
			default:
				values[i], below = nil, append(below, i)
			}
		}
		if below != nil {
			find(value, params, below, depth+1, values)
		}
	}
}

// says compares a header's text with a value of a type, and reports whether they are equal.
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

// integer returns the integer in a text: 42 for both 42 and 42.0.
func integer(s string) (f float64, ok bool) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f >= -maxInteger && f <= maxInteger
}
