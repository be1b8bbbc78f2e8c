// Package hostset adapts functions that are written for package hostabi to the sandbox.
package hostset

import (
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// Of returns a set for the sandbox.
func Of(s *hostabi.Set) *hostcall.Set {
	set := &hostcall.Set{Module: s.Module, Target: s.Target, Nests: s.Nests}
	for _, f := range s.Functions {
		set.Functions = append(set.Functions, Function(f))
	}
	return set
}

// Function returns a function for the sandbox.
func Function(f hostabi.Function) hostcall.Function {
	return hostcall.Function{Name: f.Name, Params: f.Params, Results: f.Results, Cost: f.Cost,
		Do: func(c *hostcall.Call, stack []uint64) { f.Do((*hostabi.Call)(c), stack) }}
}
