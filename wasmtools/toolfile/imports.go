package toolfile

import (
	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools/capability/compose"
	"github.com/toolsrv/toolsrv/wasmtools/capability/egress"
	"github.com/toolsrv/toolsrv/wasmtools/capability/kv"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/capability/settings"
)

// Imports returns the sets of functions that tools may import. An engine that is to load files needs them in its Config.
func Imports() []*hostabi.Set {
	return append(abi1.Sets(), egress.Set(), kv.Set(), secret.Set(), settings.Set(), compose.Set())
}

// Modules returns the import modules that every file may import from. Those of the capabilities grant nothing: a function refuses a
// tool that does not declare it, or was not granted it.
func Modules() []string {
	return append(abi1.Modules(), egress.Module, kv.Module, secret.Module, settings.Module, compose.Module)
}

// programOf has an engine check a module.
func programOf(engine *sandbox.Engine, made wasmbin.Made, place Place) (*sandbox.Program, error) {
	return engine.LoadAs(made.Module, sandbox.Loading{Imports: Modules(), Bundle: made.Bundle, Replaces: place.Replaces})
}
