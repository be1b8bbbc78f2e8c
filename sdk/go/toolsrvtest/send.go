package toolsrvtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// A head is a request's, and an answerHead its answer's.
type (
	head struct {
		Method, URL string
		Headers     [][2]string
	}
	answerHead struct {
		Status  int         `json:"status"`
		URL     string      `json:"url"`
		Headers [][2]string `json:"headers"`
	}
)

// Send has the handler answer a request that the tool may send.
func (h *host) Send(text, body []byte) ([]byte, error) {
	var sent head
	if err := json.Unmarshal(text, &sent); err != nil {
		return nil, failure("invalid", "the request's head: %v", err)
	}
	target, err := url.Parse(sent.URL)
	if err != nil || target.Host == "" || target.User != nil {
		return nil, failure("invalid", "%q is not an absolute URL without a user", sent.URL)
	}
	if !h.needs.reaches(target) {
		return nil, undeclared("http " + target.Scheme + "://" + target.Host + target.EscapedPath())
	}
	if h.world.HTTP == nil {
		return nil, missing("http " + target.Scheme + "://" + target.Host)
	}
	r, err := http.NewRequest(sent.Method, sent.URL, bytes.NewReader(body))
	if err != nil {
		return nil, failure("invalid", "%v", err)
	}
	for _, field := range sent.Headers {
		if refusedField(field[0]) {
			return nil, failure("invalid", "the header %s is the host's: leave it out", field[0])
		}
		r.Header.Add(field[0], field[1])
	}
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	if h.world.HTTP.ServeHTTP(w, r); w.failure != nil {
		return nil, w.failure
	}
	got := w.Result()
	answer := answerHead{Status: got.StatusCode, URL: sent.URL, Headers: [][2]string{}}
	for name, values := range got.Header {
		for _, value := range values {
			answer.Headers = append(answer.Headers, [2]string{name, value})
		}
	}
	slices.SortStableFunc(answer.Headers, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	out, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return slices.Concat(binary.LittleEndian.AppendUint32(nil, uint32(len(out))), out, w.Body.Bytes()), nil
}

// recorder keeps what a handler answers.
type recorder struct {
	*httptest.ResponseRecorder
	failure *toolsrv.Failure
}

// FailRequest makes the request that a handler of [World] answers fail, as one with the code "timeout" or "connect" does, whatever
// the handler has written. It panics if w is not what the handler was given.
func FailRequest(w http.ResponseWriter, f *toolsrv.Failure) { w.(*recorder).failure = f }

// refusedField reports whether a host does not let tools set a header.
func refusedField(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{
		"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
	}, name) || strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "sec-")
}
