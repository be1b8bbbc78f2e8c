package toolfile

import "strings"

// explain says more of an error of toolsrv_describe where its cause is a fault of a compiler that is known, or nothing.
// Where the module names its functions, the trace tells, even if what the panic prints goes nowhere.
func explain(err error) string {
	if strings.Contains(err.Error(), "reflectlite.RawType).AssignableTo") {
		return `the tool panics with "reflect: unimplemented: AssignableTo with interface": TinyGo up to 0.40.1 breaks encoding/json in a program ` +
			`that reaches errors.As; write toolsrv.AsType for errors.As, leave out the library that calls it, or have Go build the tool: `
	}
	return ""
}
