// Package http is the import module by which a tool sends requests over HTTP, as docs/abi.md describes it. The host makes the connections: a guest
// never holds a socket, and learns about a server only what is in its answers.
//
// A request is checked three times: its URL against what the tool needs and was granted ([reach.Allowed]), its headers against what a guest may set,
// and each address of its host, after the name was looked up, by the code that dials it. Each redirect is checked like a new request. What the
// operator adds to a request, such as a key, is added last, and removed from the answer.
package http

import (
	"time"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_http_v1"

// These are codes of failures that other capabilities don't have.
const (
	codeTLS      = "tls"       // the server's certificate is not trusted, or the handshake failed
	codeDNS      = "dns"       // the host's name has no address
	codeConnect  = "connect"   // no address of the host accepts connections
	codeRedirect = "redirect"  // the answer is a redirect that is not followed
	codeNoSecret = "no_secret" // the operator puts a secret of the caller's own into such requests, and this caller has none
)

// Set returns the functions of Module, with their entries in docs/generated/functions.md. What they need of a tool is its *[Permission].
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		// (head, head_len, body, body_len)
		// Sends a request and waits for the whole answer; [what may be sent](capabilities.md#http). The head is JSON, at most 128 KiB:
		// `{"method": "GET", "url": "https://…", "headers": [["name", "value"], …]}`, and optionally `timeout`, in milliseconds, and `redirect`, `"follow"`
		// or `"manual"`. The answer is a u32, the length of its head; the head, `{"status": 200, "url": "…", "headers": [["name", "value"], …]}`, with the
		// last request's `url`; and the body. Further codes are `tls`, `dns`, `connect`, `redirect`, and `no_secret` where the caller lacks
		// [a secret of its own](capabilities.md#each-callers-own). `invalid` is
		//
		// - a URL that is not ASCII, has no `/` after the host, a user or dot segments, or can be read in two ways; its fragment is not sent;
		// - the methods `CONNECT`, `TRACE` and `TRACK`;
		// - more than 100 headers, or 32 KiB of them;
		// - a header that is the host's to set, in any case and with any other sign for `-`: `Host`, `Connection`, `Keep-Alive`, `Content-Length`,
		//   `Transfer-Encoding`, `TE`, `Trailer`, `Expect`, `Upgrade`, `HTTP2-Settings`, `Accept-Encoding`, `Proxy`, `Proxy-*` and `Sec-*`; and `Range`,
		//   `If-Range` and `Request-Range` where the host puts a secret into the request.
		//
		// The host asks for gzip and undoes it, in the headers too. Redirects are followed as the grant allows and as `fetch` does; to another origin go
		// only `Accept`, `Accept-Language`, `Content-Language`, `Content-Type` and `User-Agent`.
		{Name: "send", Params: "iiii", Results: "i", Cost: sendCost, Do: send},
		answer.Read(),
	}}
}

// These are what a request is charged, in nanoseconds.
const (
	sendCost     = 20_000 // for checking, writing and reading a request, with a head of freeHead bytes and freeValues values
	headByteCost = 20     // for each further byte of the head
	valueCost    = 100    // for each further value
	freeHead     = 1 << 10
	freeValues   = 64
)

// These are the memory that is accounted while a head is read.
const (
	headCopies = 4   // copies of its bytes: as received, as text, decoded, and in net/http's form
	valueBytes = 160 // for each value: in the tree, and in the list of headers
)

func send(c *hostabi.Call, stack []uint64) {
	begun := time.Now()
	g, _ := c.Grant().(*Permission)
	r, f := accept(c, g, stack)
	if f != nil {
		use := hostabi.Use{Capability: "http", Took: time.Since(begun), Outcome: f.Code}
		if r != nil {
			use.Target = r.method + " " + r.target.Origin.String() // without the path, since secrets are not searched for yet
		}
		c.Used(use)
		answer.Fail(c, stack, f)
		return
	}
	c.Hold(int64(uint32(stack[3])))
	r.body = c.Read(stack[2], stack[3])
	b, f := g.send(c, linesOf(c, g), r, capability.Principal(c))
	c.Hold(-int64(uint32(stack[3])))
	if f != nil {
		answer.Fail(c, stack, f)
		return
	}
	answer.Give(c, stack, b)
}

// accept reads the head of a request and, if that is acceptable, its body. With a failure, it returns as much of the request as is known.
func accept(c *hostabi.Call, g *Permission, stack []uint64) (*request, *answer.Failure) {
	if g == nil {
		return nil, answer.NotDeclared(c, "http")
	}
	if n := uint32(stack[1]); n > maxHead {
		return nil, answer.Failf(answer.TooLarge, "The head of the request has %d bytes; the limit is %d.", n, maxHead)
	}
	r, f := readRequest(c, stack[0], stack[1])
	if f != nil {
		return nil, f
	}
	if n, most := int64(uint32(stack[3])), g.maxRequestBytes(); n > most {
		return r, bodyTooLarge(n, most)
	}
	return r, nil
}

// linesOf returns the connections that the call keeps until it ends.
func linesOf(c *hostabi.Call, g *Permission) *lines {
	kept, ok := answer.Kept(c).(*lines)
	if !ok {
		kept = &lines{connections: g.options.Connections}
		answer.Keep(c, kept, kept.close)
	}
	return kept
}

// readRequest reads the head of a request, and charges for it first: at worst, the parser takes 12 ns for each byte and 60 ns for each value.
// sendCost includes a head of the usual size.
func readRequest(c *hostabi.Call, ptr, length uint64) (*request, *answer.Failure) {
	size := int(uint32(length))
	c.Charge(max(0, size-freeHead) * headByteCost)
	head := c.View(ptr, length)
	values := countValues(head)
	if values > maxValues {
		return nil, answer.Failf(answer.TooLarge, "The head of the request has %d values; the limit is %d. At most %d may be headers.", values, maxValues, maxHeaders)
	}
	c.Charge(max(0, values-freeValues) * valueCost)
	if size <= freeHead {
		return parseRequest(c.Read(ptr, length))
	}
	held := int64(headCopies*size + values*valueBytes)
	c.Hold(held)
	r, f := parseRequest(c.Read(ptr, length))
	c.Hold(-held)
	return r, f
}

func bodyTooLarge(size, limit int64) *answer.Failure {
	return answer.Failf(answer.TooLarge, "The body of the request has %d bytes; the limit of the tool's grant is %d (http_request_bytes).", size, limit)
}
