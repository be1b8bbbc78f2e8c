// Package compose lets tools call other tools of the same service, on behalf of whoever calls them.
package compose

import (
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_tools_v1"

// Set returns the functions of Module.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		{Name: "call", Params: "iiii", Results: "i", Do: call},
		answer.Read(),
	}}
}

// call calls the tool of an id with arguments, which are JSON.
func call(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.NotDeclared(c, "tools")) }
