// Package egress is the import module by which a tool sends requests over HTTP, as docs/abi.md describes it. The host does the
// reaching: a guest never holds a socket, and learns of a server only what is in its answers.
//
// A request is checked three times: its URL by what the tool needs and what it was granted ([reach.Allowed]), its headers by what a
// guest may set, and each address of its host, after the name was looked up and by whoever dials it. Redirects are requests of their
// own. What the operator has put into a request, such as a key, is put in last, and taken out of what comes back.
package egress

import (
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_http_v1"

// The codes of failures, besides those of all capabilities.
const (
	codeTLS      = "tls"      // the server's certificate is not one to be trusted, or the handshake failed
	codeDNS      = "dns"      // the host's name has no address
	codeConnect  = "connect"  // no address of the host takes connections
	codeRedirect = "redirect" // the answer is a redirect that is not followed
)

// Set returns the functions of Module. What they need of a tool is its *[Grant].
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		{Name: "send", Params: "iiii", Results: "i", Cost: sendCost, Do: send},
		answer.Read(),
	}}
}

// sendCost is what a request costs, besides the bytes: it is checked, written and read.
const sendCost = 20_000

func send(c *hostabi.Call, stack []uint64) {
	g, _ := c.Grant().(*Grant)
	if g == nil {
		answer.Fail(c, stack, answer.NotDeclared(c, "http"))
		return
	}
	headPtr, headLen, bodyPtr, bodyLen := stack[0], stack[1], stack[2], stack[3]
	if n := uint32(headLen); n > maxHead {
		answer.Fail(c, stack, answer.Failf(answer.TooLarge, "The head of the request has %d bytes; the limit is %d.", n, maxHead))
		return
	}
	if n, most := int64(uint32(bodyLen)), g.maxRequestBytes(); n > most {
		answer.Fail(c, stack, bodyTooLarge(n, most))
		return
	}
	r, f := parseRequest(c.Read(headPtr, headLen))
	if f == nil {
		c.Hold(int64(uint32(bodyLen)))
		r.body = c.Read(bodyPtr, bodyLen)
		var b []byte
		b, f = g.send(c, &answer.Of(c).Count, r)
		c.Hold(-int64(uint32(bodyLen)))
		if f == nil {
			answer.Give(c, stack, b)
			return
		}
	}
	answer.Fail(c, stack, f)
}

func bodyTooLarge(size, limit int64) *answer.Failure {
	return answer.Failf(answer.TooLarge, "The body of the request has %d bytes; the limit of the tool's grant is %d (http_request_bytes).", size, limit)
}
