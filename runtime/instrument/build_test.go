package instrument_test

import "github.com/toolsrv/toolsrv/internal/testkit/wasmtest"

// What tests put modules together of.
var (
	module, section, custom = wasmtest.Module, wasmtest.Section, wasmtest.Custom
	vec, str, b, leb        = wasmtest.Vec, wasmtest.Str, wasmtest.Bytes, wasmtest.LEB
)
