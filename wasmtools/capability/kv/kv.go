// Package kv lets tools keep values under keys, in a space that the tools of a namespace share and that has a quota.
package kv

import (
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_kv_v1"

// Set returns the functions of Module.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		{Name: "get", Params: "ii", Results: "i", Do: get},
		{Name: "set", Params: "iiiiII", Results: "i", Do: set},
		{Name: "delete", Params: "iiI", Results: "i", Do: remove},
		{Name: "list", Params: "iiiii", Results: "i", Do: list},
		answer.Read(),
	}}
}

func get(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.NotDeclared(c, "kv")) }

func set(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.NotDeclared(c, "kv")) }

func remove(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.NotDeclared(c, "kv")) }

func list(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.NotDeclared(c, "kv")) }
