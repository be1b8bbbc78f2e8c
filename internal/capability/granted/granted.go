// Package granted is what tools were granted, between who decides it and who makes the tools.
package granted

import (
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Tool is what a tool was granted of all of its needs.
type Tool struct {
	// Values are for the sets of functions.
	Values []hostcall.Grant
	// Settings are the settings of the tool's module as JSON, or nil.
	Settings []byte
	// Missing are the needs that it was not granted: such a tool can't be called.
	Missing []wasmtools.Missing
	// Waits is whether the tool waits rather than computes.
	Waits bool
}
