package http

import (
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

const (
	// maxAnswerHeaders is how many headers an answer may have. Each takes some 60 bytes of memory in addition to its own bytes, and these are not
	// accounted.
	maxAnswerHeaders = 500
	firstRead        = 16 << 10 // size of the first read of a body, in bytes
	gzipBytes        = 64 << 10 // bytes of memory that decompressing takes
	// slack is how many bytes a body may have beyond the guest's limit, if the grant has secrets. Secrets are removed before the body is measured.
	// Otherwise a tool that makes a server repeat its headers could find out a secret's length from the size at which an answer gets too large. A
	// compressed body may have slack more bytes than its decompressed form.
	slack = 1 << 20
)

// dropped are headers of an answer that describe the connection, or the body on the wire.
var dropped = []string{"Alt-Svc", "Connection", "Content-Encoding", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// ofBody are headers with a checksum of the body. Even in an answer without a body, the checksum covers secrets that would be removed.
var ofBody = []string{"Content-Digest", "Content-Md5", "Digest", "Etag", "Repr-Digest"}

// checkHeaders refuses an answer with too many headers, before waiting for its body.
func checkHeaders(headers http.Header) *answer.Failure {
	n := 0
	for _, values := range headers {
		n += len(values)
	}
	if n > maxAnswerHeaders {
		return answer.Failf(answer.TooLarge, "The server's answer has %d headers; the limit is %d.", n, maxAnswerHeaders)
	}
	return nil
}

// read reads an answer to its end.
func (x *exchange) read(response *http.Response) ([]byte, *answer.Failure) {
	if response.StatusCode < 200 {
		return nil, answer.Failf(answer.Unavailable, "The server wants to switch protocols, but was not asked to.")
	}
	body, f := x.readBody(response)
	if f != nil {
		return nil, f
	}
	if x.know() && x.partial {
		return nil, partOf()
	}
	shown := body
	if !x.redact.Empty() && len(body) > 0 {
		x.hold(len(body))
		x.c.Charge(len(body) * hostcall.SearchCost)
		shown = x.redact.Bytes(body)
	}
	if int64(len(shown)) > x.rule.ResponseBytes {
		return nil, x.tooLarge()
	}
	changed := len(shown) != len(body) || len(body) > 0 && &shown[0] != &body[0]
	x.use.Redacted = changed
	return x.encode(response.StatusCode, x.headers(response, len(shown), changed), shown), nil
}

func (x *exchange) tooLarge() *answer.Failure {
	return answer.Failf(answer.TooLarge, "The server's answer has more than %d bytes, which is the limit of the tool's grant (http_response_bytes).", x.rule.ResponseBytes)
}

// hasBody reports whether an answer can have a body.
func hasBody(response *http.Response) bool {
	return response.Request.Method != http.MethodHead && response.StatusCode != http.StatusNoContent && response.StatusCode != http.StatusNotModified
}

// readBody returns the decompressed body. It accounts for memory before allocating it.
func (x *exchange) readBody(response *http.Response) ([]byte, *answer.Failure) {
	if !hasBody(response) || response.ContentLength == 0 {
		return nil, nil
	}
	limit := x.rule.ResponseBytes
	if !x.redact.Empty() {
		limit += slack
	}
	from := &body{x: x, from: response.Body, left: math.MaxInt64}
	var source io.Reader = from
	size := min(firstRead, limit+1)
	switch strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ",")) {
	case "", "identity":
		if response.ContentLength > limit {
			return nil, x.tooLarge()
		}
		if n := response.ContentLength; n > 0 { // room for one more byte, to see the end
			size = min(n+1, firstRead<<4)
		}
	case "gzip", "x-gzip":
		x.hold(gzipBytes)
		from.left, from.cost = limit+slack, packedCost
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return nil, x.broken(err)
		}
		source = unpacked
	default:
		return nil, answer.Failf(answer.Unavailable, "The server's answer has an encoding that was not asked for.")
	}
	var b []byte
	for {
		if len(b) == cap(b) {
			if int64(len(b)) > limit {
				return nil, x.tooLarge()
			}
			x.hold(int(size))
			b = append(make([]byte, 0, size), b...)
			size = min(2*size, limit+1)
		}
		n, err := fill(source, b[len(b):cap(b)])
		x.c.Charge(n * byteCost)
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, x.broken(err)
		}
	}
}

// These are what a byte of a body is charged, in nanoseconds.
const (
	byteCost   = 4   // for decrypting, decompressing and copying the byte
	packedCost = 100 // if the byte is compressed: it takes 25 ns in a text, and 400 ns in compression tables without data
)

// fill reads until b is full. Unlike io.ReadFull it distinguishes a body that was cut off from one that has ended.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}

// A body is an answer's body as it arrives. Only the wait for each piece is bounded here: work on a piece, such as decompression, is charged to the
// call.
type body struct {
	x    *exchange
	from io.Reader
	left int64 // bytes that may still come
	cost int   // charge for each byte, in nanoseconds
}

// errEndless ends the reading of a body that has more compressed bytes than it may have decompressed ones: most of the compressed bytes then
// contain no data.
var errEndless = errors.New("the decompressed body is larger than allowed")

func (b *body) Read(p []byte) (n int, err error) {
	b.x.wait(func() { n, err = b.from.Read(p) })
	b.x.whole = err == io.EOF
	b.x.use.Received += int64(n)
	b.x.c.Charge(n * b.cost)
	if b.left -= int64(n); b.left < 0 {
		return 0, errEndless
	}
	return n, err
}

// headers returns the headers of an answer for the guest, sorted by name. size is the size of the guest's body, and changed says whether
// that differs from the server's.
func (x *exchange) headers(response *http.Response, size int, changed bool) [][2]string {
	if hasBody(response) {
		response.Header["Content-Length"] = []string{strconv.Itoa(size)}
	} else if !x.redact.Empty() {
		response.Header.Del("Content-Length")
		changed = true
	}
	list, total := [][2]string{}, 0
	for name, values := range response.Header {
		if slices.Contains(dropped, name) || changed && slices.Contains(ofBody, name) {
			continue
		}
		for _, value := range values {
			pair := [2]string{x.redact.Name(name), x.redact.String(value)}
			x.use.Redacted = x.use.Redacted || pair != [2]string{name, value}
			list, total = append(list, pair), total+len(pair[0])+len(pair[1])
		}
	}
	if !x.redact.Empty() {
		x.c.Charge(total * hostcall.SearchCost)
	}
	slices.SortStableFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list
}

// failure returns the failure for an error before the answer.
func (x *exchange) failure(err error) *answer.Failure {
	if f := x.late(); f != nil {
		return f
	}
	if f, ok := errors.AsType[*answer.Failure](err); ok {
		return f
	}
	if errors.Is(err, errLongHead) {
		return answer.Failf(answer.TooLarge, "The headers of the server's answer have more than %d bytes.", maxHeadBytes)
	}
	return x.broken(err)
}

// broken returns the failure for an incomplete answer.
func (x *exchange) broken(err error) *answer.Failure {
	if f := x.late(); f != nil {
		return f
	}
	if errors.Is(err, errEndless) {
		return x.tooLarge()
	}
	reason := "its answer is not valid"
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "it has broken the connection"
	}
	return answer.Failf(answer.Unavailable, "%s can't be used: %s.", x.target.Origin, reason)
}

// late returns the failure of a request that has timed out.
func (x *exchange) late() *answer.Failure {
	if x.ctx.Err() == nil {
		return nil
	}
	return answer.Failf(answer.Timeout, "%s has not answered in full within %s.", x.target.Origin, x.timeout)
}
