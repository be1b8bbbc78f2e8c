package toolfile

import (
	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/capability/hostset"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// Imports returns the sets of functions that tools may import: those that every server has, and those of a program's own capabilities. An engine that
// loads files needs them in its Config. Importing grants nothing: the functions of a capability refuse a tool that does not declare it, or that was
// not granted it.
func Imports(capabilities ...capability.Kind) []*hostcall.Set {
	sets := abi1.Sets()
	for _, k := range append(builtin.Kinds(), capabilities...) {
		if k.Set != nil {
			sets = append(sets, hostset.Of(k.Set))
		}
	}
	return sets
}

// programOf makes an engine check a module. The module may import all functions that the engine has.
func programOf(engine *sandbox.Engine, made wasmbin.Made, place Place) (*sandbox.Program, error) {
	return engine.LoadAs(made.Module, sandbox.Loading{Imports: engine.Modules(), Bundle: made.Bundle, Replaces: place.Replaces})
}

// ParseManifest parses a manifest, which may need the capabilities that every server has.
func ParseManifest(text []byte) (*manifest.Manifest, error) {
	return manifest.Parse(text, builtin.Needs()...)
}
