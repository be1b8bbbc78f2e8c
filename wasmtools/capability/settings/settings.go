// Package settings lets tools read the settings that their operator has made for them.
package settings

import (
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_config_v1"

// Set returns the functions of Module.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		{Name: "read", Results: "i", Do: read},
		answer.Read(),
	}}
}

func read(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.NotDeclared(c, "config")) }
