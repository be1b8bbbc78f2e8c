package toolfile

import (
	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// Imports returns the sets of functions that tools may import. An engine that is to load files needs them in its Config.
func Imports() []*hostabi.Set { return abi1.Sets() }

// load has an engine check a module, which may import what ABI 1 offers.
func load(engine *sandbox.Engine, binary *wasmbin.Module) (*sandbox.Program, error) {
	return engine.LoadModule(binary, abi1.Modules()...)
}
