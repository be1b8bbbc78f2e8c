// Package egress lets tools send HTTP requests to the services that they were granted, and to nothing else.
package egress

import (
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_http_v1"

// Set returns the functions of Module.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		{Name: "send", Params: "iiii", Results: "i", Do: send},
		answer.Read(),
	}}
}

// send sends a request: a head, which is JSON, and a body.
func send(c *hostabi.Call, stack []uint64) {
	answer.Fail(c, stack, answer.NotDeclared(c, "http"))
}
