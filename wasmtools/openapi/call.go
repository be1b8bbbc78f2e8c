package openapi

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// firstRead is the first size of a buffer, in bytes: more than most calls have.
const firstRead = 4 << 10

// A buffer holds the body of a call from its first byte until the answer is written: arguments, violations and
// the result may all share its memory.
type buffer struct {
	bytes []byte
	held  int64 // bytes that memory counts for it
}

// call answers a POST to the tool that is number i of the state.
func (x exchange) call(i int) {
	route := x.state.generation.Routes()[i]
	x.SetTool(x.state.entries[i].path)
	if !route.Enabled {
		x.Fail(disabled(x.state.entries[i].path, route.Reason))
		return
	}
	b := x.state.door.buffers.Get().(*buffer)
	defer func() { x.state.door.memory.release(b.held) }()
	result, err := x.run(route.Tool, x.state.entries[i].path, b)
	if err != nil {
		x.Fail(err)
	} else {
		x.Send(http.StatusOK, result)
	}
	// After a panic this is not reached: nobody knows who still holds the buffer.
	if cap(b.bytes) <= small && b.held == 0 {
		x.state.door.buffers.Put(b)
	}
}

func (x exchange) run(tool *wasmtools.Tool, path string, b *buffer) ([]byte, error) {
	limit := tool.MaxInput
	if limit <= 0 {
		limit = wasmtools.DefaultMaxInput
	}
	if err := x.state.door.memory.check(); err != nil {
		return nil, err
	}
	if err := x.readBody(b, path, limit); err != nil {
		return nil, err
	}
	arguments, err := x.state.door.memory.validate(x.Context(), tool.Parameters, b.bytes)
	if err != nil {
		return nil, err
	}
	call := x.Call()
	call.Arguments = arguments
	result, err := tool.Call(x.Context(), call)
	if err != nil {
		return nil, err
	}
	if n := int64(len(result)); n > small { // it is held for as long as the client takes to read it
		x.state.door.memory.hold(n)
		b.held += n
	}
	return result, nil
}

func disabled(path, reason string) error {
	message := "Tool " + path + " is disabled"
	if reason != "" {
		message += ": " + reason
	}
	return &wasmtools.Error{Code: wasmtools.CodeToolDisabled, Message: message}
}

// readBody reads the request's body of at most limit bytes into b. A body of another type than JSON is refused
// before it is read.
func (x exchange) readBody(b *buffer, path string, limit int64) error {
	r := x.Request()
	b.bytes = b.bytes[:0]
	tooLarge := func() error {
		return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: fmt.Sprintf("The body is larger than %d bytes, the limit of %s", limit, path)}
	}
	if err := checkEncoding(r.Header); err != nil {
		x.Header().Set("Accept-Encoding", "identity")
		return err
	}
	typeErr := checkType(r.Header)
	if typeErr != nil && (r.ContentLength > 0 || isCrossSite(r)) {
		x.Header().Set("Accept-Post", "application/json")
		return typeErr
	}
	if r.ContentLength > limit {
		return tooLarge()
	}
	if r.Body == nil || r.ContentLength == 0 {
		// net/http drops the Transfer-Encoding of HTTP/1.0 and takes the body for empty: the tool would run without
		// the arguments that the client sent.
		if typeErr == nil && !r.ProtoAtLeast(1, 1) && len(r.Header["Content-Length"]) == 0 {
			return incomplete("A body of HTTP/1.0 needs a Content-Length")
		}
		return nil
	}
	most := min(limit, math.MaxInt64-1) + 1 // one more shows that there is too much
	if typeErr != nil {
		most = 1 // of unknown length: without a type it must be empty
	}
	err := b.read(x.state.door.memory, r.Body, r.ContentLength, most)
	var own *wasmtools.Error
	switch cut := new(http.MaxBytesError); {
	case typeErr != nil && len(b.bytes) > 0:
		x.Header().Set("Accept-Post", "application/json")
		return typeErr
	case int64(len(b.bytes)) > limit, errors.As(err, &cut):
		return tooLarge()
	case errors.As(err, &own):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded): // net/http cancels the request then, too
		return &wasmtools.Error{Code: wasmtools.CodeRequestTimeout, Err: fmt.Errorf("read body: %w", err)}
	case err != nil && x.Context().Err() != nil:
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: fmt.Errorf("read body: %w", err)}
	case err != nil:
		return incomplete("The body could not be read to its end")
	}
	return nil
}

func incomplete(message string) error {
	return &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []wasmtools.Violation{
		{Type: "body_incomplete", Loc: []any{"body"}, Msg: message}}}
}

// read fills b until the end of the body, or until most bytes are there. It grows as the bytes come, so that a
// client which promises much and sends little costs little. What is large has to be granted by m.
func (b *buffer) read(m *memory, body io.Reader, length, most int64) error {
	b.bytes = slices.Grow(b.bytes, int(min(max(length+1, firstRead), small)))
	for int64(len(b.bytes)) < most {
		if len(b.bytes) == cap(b.bytes) {
			next := min(2*int64(len(b.bytes)), most)
			if n := next - b.held; next > small {
				if !m.grow(b.held, n) {
					return errMemory()
				}
				b.held += n
			}
			b.bytes = append(make([]byte, 0, next), b.bytes...)
		}
		free := b.bytes[len(b.bytes):cap(b.bytes)]
		free = free[:min(int64(len(free)), most-int64(len(b.bytes)))]
		n, err := body.Read(free)
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkType reports why the request's type is not JSON in UTF-8, or nil. Without a type a body is refused, too: a
// page of another site can make a browser send one that is missing, text/plain or a form, but not this one.
func checkType(h http.Header) error {
	values := h["Content-Type"]
	if len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	unsupported := func(what string) error {
		return &wasmtools.Error{Code: wasmtools.CodeUnsupportedMediaType, Message: what + "; send Content-Type: application/json"}
	}
	switch len(values) {
	case 0:
		return unsupported("The body has no Content-Type")
	case 1:
	default:
		return unsupported("There is more than one Content-Type")
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	if err != nil {
		return unsupported("The Content-Type cannot be read")
	}
	kind, isApplication := strings.CutPrefix(media, "application/")
	if !isApplication || (kind != "json" && (!strings.HasSuffix(kind, "+json") || kind == "+json")) {
		return unsupported(fmt.Sprintf("The body is %q", text.Clip(media, 80)))
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return unsupported(fmt.Sprintf("The body's charset is %q, not utf-8", text.Clip(charset, 80)))
	}
	return nil
}

// isCrossSite reports whether a browser says that it sends this for a page of another origin. An empty body needs
// no type, but it must not be a way around the type for such a page.
func isCrossSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "cross-site" || site == "same-site"
	}
	// To a plain-HTTP address of another machine browsers say nothing of the site, but always the origin.
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin != "" && !strings.EqualFold(host, r.Host)
}

func checkEncoding(h http.Header) error {
	for _, value := range h["Content-Encoding"] {
		if value != "" && !strings.EqualFold(value, "identity") {
			return &wasmtools.Error{
				Code:    wasmtools.CodeUnsupportedMediaType,
				Message: fmt.Sprintf("The body has the Content-Encoding %q; send it as it is", text.Clip(value, 80)),
			}
		}
	}
	return nil
}
