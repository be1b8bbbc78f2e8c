package http

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// maxHead bounds the head of a request in bytes: a URL and headers with their escapes.
const maxHead = 128 << 10

// maxValues bounds the JSON values in a head: an array and two strings for each header, and the members. It allows more headers than are
// sent, so that the guest gets an error that says so.
const maxValues = 4*maxHeaders + 16

// countValues returns an upper bound for the number of values in a JSON text. For a text that is not JSON, it bounds the values that are read before
// the error is found.
func countValues(head []byte) int {
	n := 1
	for i := 0; i < len(head); i++ {
		switch head[i] {
		case '[', '{', ',':
			n++
		case '"':
			for i++; i < len(head) && head[i] != '"'; i++ {
				if head[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}

// A request is a guest's request. It has been checked, except against the grant.
type request struct {
	method  string
	target  reach.Target
	headers http.Header
	body    []byte
	timeout time.Duration // 0: the grant's
	manual  bool          // redirects are not followed
}

// parseRequest reads the head of a request.
func parseRequest(head []byte) (*request, *answer.Failure) {
	in, err := readHead(string(head))
	if err != nil {
		return nil, answer.Failf(answer.Invalid, "The head of the request is not valid: %s.", err)
	}
	r := &request{method: in.method, headers: make(http.Header, len(in.headers)+2), manual: in.redirect == "manual", timeout: time.Duration(in.timeout) * time.Millisecond}
	switch {
	case len(in.method) > 32 || !isToken(in.method):
		return nil, answer.Failf(answer.Invalid, "The method %.40q is not valid.", in.method)
	case slices.Contains([]string{"CONNECT", "TRACE", "TRACK"}, strings.ToUpper(in.method)):
		return nil, answer.Failf(answer.Invalid, "The method %s can't be used: it is for proxies.", in.method)
	case in.redirect != "" && in.redirect != "follow" && in.redirect != "manual":
		return nil, answer.Failf(answer.Invalid, `The redirect %.40q is neither "follow" nor "manual".`, in.redirect)
	case in.timeout < 0 || in.timeout > int64(24*time.Hour/time.Millisecond):
		return nil, answer.Failf(answer.Invalid, "The timeout of %d ms is not between 0 and a day.", in.timeout)
	case len(in.headers) > maxHeaders:
		return nil, answer.Failf(answer.TooLarge, "The request has %d headers; the limit is %d.", len(in.headers), maxHeaders)
	}
	if r.target, err = reach.ParseTarget(in.url); err != nil {
		return nil, answer.Failf(answer.Invalid, "The request can't be sent: %s.", err)
	}
	total := 0
	for _, pair := range in.headers {
		total += len(pair[0]) + len(pair[1])
	}
	if total > maxHeaderBytes {
		return nil, answer.Failf(answer.TooLarge, "The headers of the request have %d bytes; the limit is %d.", total, maxHeaderBytes)
	}
	for _, pair := range in.headers {
		name, value := pair[0], strings.Trim(pair[1], " \t")
		if f := checkHeader(name, value); f != nil {
			return nil, f
		}
		r.headers.Add(name, value)
	}
	return r, nil
}

// A head is the head of a request, as it was written.
type head struct {
	method, url, redirect string
	headers               [][2]string
	timeout               int64
}

// readHead reads the JSON of a head. It is the only reader, so nothing in a head can be understood in two ways.
func readHead(text string) (h head, err error) {
	var tree jsontree.Tree
	if err := tree.Read(text); err != nil {
		return h, err
	}
	if tree.Values[0].Kind != jsontree.Object {
		return h, errors.New("it is not an object")
	}
	for i := tree.Values[0].First; i != 0; i = tree.Values[i].Next {
		v := &tree.Values[i]
		fits := true
		switch v.Key {
		case "method":
			h.method, fits = decoded(v)
		case "url":
			h.url, fits = decoded(v)
		case "redirect":
			h.redirect, fits = decoded(v)
		case "timeout":
			h.timeout, fits = integer(v)
		case "headers":
			h.headers, fits = readPairs(&tree, v)
		default:
			return h, fmt.Errorf("it has the unknown member %.40q", v.Key)
		}
		if !fits {
			return h, fmt.Errorf("the member %s is of the wrong type", v.Key)
		}
	}
	return h, nil
}

// decoded returns a string. null means none.
func decoded(v *jsontree.Value) (string, bool) {
	if v.Kind != jsontree.String {
		return "", v.Kind == jsontree.Null
	}
	return v.Decoded(), true
}

// integer returns an integer. null means 0.
func integer(v *jsontree.Value) (int64, bool) {
	if v.Kind != jsontree.Number {
		return 0, v.Kind == jsontree.Null
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	return n, err == nil
}

// readPairs reads an array of pairs of strings.
func readPairs(tree *jsontree.Tree, list *jsontree.Value) (pairs [][2]string, ok bool) {
	if list.Kind != jsontree.Array {
		return nil, list.Kind == jsontree.Null
	}
	pairs = make([][2]string, 0, list.Count)
	for i := list.First; i != 0; i = tree.Values[i].Next {
		pair := &tree.Values[i]
		if pair.Kind != jsontree.Array || pair.Count != 2 {
			return nil, false
		}
		name := &tree.Values[pair.First]
		value := &tree.Values[name.Next]
		if name.Kind != jsontree.String || value.Kind != jsontree.String {
			return nil, false
		}
		pairs = append(pairs, [2]string{name.Decoded(), value.Decoded()})
	}
	return pairs, true
}

// resolve returns the target of a redirect. location is what the server has sent. A location that is relative with dot segments, or can be
// understood in two ways, is an error.
func resolve(from reach.Target, location string) (reach.Target, error) {
	location, _, _ = strings.Cut(location, "#")
	switch {
	case location == "":
		return reach.Target{}, errors.New("it names no place")
	case strings.HasPrefix(location, "//"):
		location = from.Scheme + ":" + location
	case strings.HasPrefix(location, "/"):
		location = from.Origin.String() + location
	case strings.HasPrefix(location, "?"):
		location = from.Origin.String() + from.Path + location
	case !strings.Contains(strings.SplitN(location, "/", 2)[0], ":"):
		location = from.Origin.String() + from.Path[:strings.LastIndexByte(from.Path, '/')+1] + location
	}
	return reach.ParseTarget(location)
}
