package toolfile

import "strings"

// explain returns what to do about an error of toolsrv_describe that is caused by a known fault of a compiler, or "". If the module
// names its functions, the trace tells, even if what the panic prints is lost.
func explain(err error) string {
	if strings.Contains(err.Error(), "reflectlite.RawType).AssignableTo") {
		return `the tool panics with "reflect: unimplemented: AssignableTo with interface": TinyGo up to 0.40.1 breaks encoding/json in a program ` +
			`that reaches errors.As; write toolsrv.AsType for errors.As, leave out the library that calls it, or have Go build the tool: `
	}
	return ""
}
