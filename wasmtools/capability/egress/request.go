package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// maxHead bounds the head of a request in bytes: a URL and headers with their escapes.
const maxHead = 128 << 10

// A request is what a guest asks for, checked but for its grant.
type request struct {
	method  string
	target  reach.Target
	headers http.Header
	body    []byte
	timeout time.Duration // 0: that of the grant
	manual  bool          // redirects are not followed
}

// parseRequest reads the head of a request.
func parseRequest(head []byte) (*request, *answer.Failure) {
	var in struct {
		Method   string     `json:"method"`
		URL      string     `json:"url"`
		Headers  [][]string `json:"headers"`
		Timeout  int64      `json:"timeout"`
		Redirect string     `json:"redirect"`
	}
	err := checkMembers(head)
	if err == nil {
		err = json.Unmarshal(head, &in)
	}
	if err != nil {
		return nil, answer.Failf(answer.Invalid, "The head of the request is not valid: %s.", clean(err))
	}
	r := &request{method: in.Method, headers: http.Header{}, manual: in.Redirect == "manual", timeout: time.Duration(in.Timeout) * time.Millisecond}
	switch {
	case len(in.Method) > 32 || !isToken(in.Method):
		return nil, answer.Failf(answer.Invalid, "The method %.40q is not valid.", in.Method)
	case slices.Contains([]string{"CONNECT", "TRACE", "TRACK"}, strings.ToUpper(in.Method)):
		return nil, answer.Failf(answer.Invalid, "The method %s can't be used: it is for proxies.", in.Method)
	case in.Redirect != "" && in.Redirect != "follow" && in.Redirect != "manual":
		return nil, answer.Failf(answer.Invalid, `The redirect %.40q is neither "follow" nor "manual".`, in.Redirect)
	case in.Timeout < 0 || in.Timeout > int64(24*time.Hour/time.Millisecond):
		return nil, answer.Failf(answer.Invalid, "The timeout of %d ms is not from 0 to a day.", in.Timeout)
	case len(in.Headers) > maxHeaders:
		return nil, answer.Failf(answer.TooLarge, "The request has %d headers; the limit is %d.", len(in.Headers), maxHeaders)
	}
	if r.target, err = reach.ParseTarget(in.URL); err != nil {
		return nil, answer.Failf(answer.Invalid, "The request can't be sent: %s.", err)
	}
	total := 0
	for _, pair := range in.Headers {
		if len(pair) != 2 {
			return nil, answer.Failf(answer.Invalid, "A header is not a pair of name and value.")
		}
		name, value := pair[0], strings.Trim(pair[1], " \t")
		if f := checkHeader(name, value); f != nil {
			return nil, f
		}
		total += len(name) + len(value)
		r.headers.Add(name, value)
	}
	if total > maxHeaderBytes {
		return nil, answer.Failf(answer.TooLarge, "The headers of the request have %d bytes; the limit is %d.", total, maxHeaderBytes)
	}
	return r, nil
}

// checkMembers refuses what package json would let pass: names that are there twice, or in another case.
func checkMembers(head []byte) error {
	var tree jsontree.Tree
	if err := tree.Read(string(head)); err != nil {
		return err
	}
	if tree.Values[0].Kind != jsontree.Object {
		return errors.New("it is not an object")
	}
	for i := tree.Values[0].First; i != 0; i = tree.Values[i].Next {
		if name := tree.Values[i].Key; !slices.Contains([]string{"method", "url", "headers", "timeout", "redirect"}, name) {
			return fmt.Errorf("it has the unknown member %.40q", name)
		}
	}
	return nil
}

// clean returns the message of an error of a JSON reader without what is Go's.
func clean(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return "the member " + wrong.Field + " is of the wrong type"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// resolve returns where a redirect leads. location is what the server has sent. Relative ones with dot segments, and whatever else
// has two readings, lead nowhere.
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
