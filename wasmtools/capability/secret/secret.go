// Package secret lets tools read the secrets that they were granted to see.
package secret

import (
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_secret_v1"

// Set returns the functions of Module.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		{Name: "read", Params: "ii", Results: "i", Do: read},
		answer.Read(),
	}}
}

func read(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.NotDeclared(c, "secrets")) }
