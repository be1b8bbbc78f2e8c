// Package settings is the import module toolsrv_settings_v1. With it a tool reads its settings: JSON from the operator that fits the schema in the
// tool's manifest.
//
// Settings belong to a program, which can read them during its start. What it prepares from them is in the snapshot, so other settings need another
// snapshot: see sandbox.Program.With.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// Module is the name of the import module.
const Module = "toolsrv_settings_v1"

// Set returns the functions, with their entries in docs/generated/functions.md.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		// ()
		// Answers the settings, a JSON object with the schema's defaults filled in, the same in the start and in all calls. An
		// [interpreter](abi.md#interpreters) can't read it in steps 1 and 2 of the [order of events](abi.md#the-order-of-events).
		{Name: "read", Results: "i", Do: read},
		answer.Read(),
	}}
}

// read answers with the settings.
func read(c *hostabi.Call, stack []uint64) {
	s := (*hostcall.Call)(c).Settings()
	if s == nil {
		answer.Fail(c, stack, answer.Failf(answer.NotGranted, "The module has no settings: declare their schema as \"settings\" in the needs of its manifest."))
		return
	}
	answer.Give(c, stack, s)
}

// A Schema is the schema that a module declares for its settings. It is safe for concurrent use.
type Schema struct{ schema *schema.Schema }

// Compile compiles the schema that a module declares. Like the schema of arguments, it describes an object.
func Compile(declared json.RawMessage) (*Schema, error) {
	s, err := schema.CompileParameters(declared)
	if err != nil {
		return nil, err
	}
	return &Schema{s}, nil
}

// Apply checks settings, a JSON object, or nil if none were granted, and returns them with the schema's defaults filled in. An error names the key,
// and never contains a value.
func (s *Schema) Apply(granted json.RawMessage) (json.RawMessage, error) {
	if granted == nil {
		granted = json.RawMessage("{}")
	}
	settings, err := s.schema.Validate(granted)
	if err == nil {
		return settings, nil
	}
	wrong, ok := errors.AsType[*misfit.Error](err)
	if !ok || len(wrong.Violations) == 0 {
		return nil, err
	}
	if more := len(wrong.Violations) - 1; more > 0 {
		return nil, fmt.Errorf("%s, and %d more", wrong.Violations[0], more)
	}
	return nil, errors.New(wrong.Violations[0].String())
}
