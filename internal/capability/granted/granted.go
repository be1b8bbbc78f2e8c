// Package granted has the grants of a tool, as the package that decides them passes them to the one that makes tools.
package granted

import (
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Tool is which of its needs a tool was granted.
type Tool struct {
	// Values are the values for the sets of host functions.
	Values []hostcall.Grant
	// Settings are the settings of the tool's module as JSON, or nil.
	Settings []byte
	// Missing are the needs that were not granted. A tool that lacks any can't be called.
	Missing []wasmtools.Missing
	// Waits is whether the tool mostly waits rather than computes.
	Waits bool
}
