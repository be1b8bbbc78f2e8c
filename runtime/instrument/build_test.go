package instrument_test

import (
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
	"github.com/toolsrv/toolsrv/runtime/instrument"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// What tests put modules together of.
var (
	module, section, custom = wasmtest.Module, wasmtest.Section, wasmtest.Custom
	vec, str, b, leb        = wasmtest.Vec, wasmtest.Str, wasmtest.Bytes, wasmtest.LEB
)

// rewrite parses a module and rewrites it.
func rewrite(module []byte) (*instrument.Rewritten, error) {
	m, err := wasmbin.Parse(module)
	if err != nil {
		return nil, err
	}
	return instrument.Rewrite(m)
}
