package instrument_test

import (
	"fmt"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

// Parts from which tests build modules.
var (
	module, section, custom = wasmtest.Module, wasmtest.Section, wasmtest.Custom
	vec, str, b, leb        = wasmtest.Vec, wasmtest.Str, wasmtest.Bytes, wasmtest.LEB
)

// rewrite parses a module, and rewrites it. Weigh must return the same as Rewrite.
func rewrite(module []byte) (*instrument.Rewritten, error) {
	m, err := wasmbin.Parse(module)
	if err != nil {
		return nil, err
	}
	r, err := instrument.Rewrite(m)
	weight, wrong := instrument.Weigh(m)
	if fmt.Sprint(wrong) != fmt.Sprint(err) || err == nil && weight != r.Weight {
		return nil, fmt.Errorf("Weigh returns %v and %v, Rewrite %v", weight, wrong, err)
	}
	return r, err
}
