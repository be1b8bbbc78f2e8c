package toolsrv_test

import toolsrv "github.com/toolsrv/toolsrv/sdk/go"

// The schema of the arguments comes from the struct and its tags, the schema of the result from its type.
func ExampleFunc() {
	type terms struct {
		A float64 `json:"a" description:"The dividend."`
		B float64 `json:"b" description:"The divisor, not 0."`
	}
	divide := func(_ *toolsrv.Call, in terms) (float64, error) {
		if in.B == 0 {
			return 0, &toolsrv.Error{Code: "division_by_zero", Message: "The divisor is 0: pass another number."}
		}
		return in.A / in.B, nil
	}
	toolsrv.Func("divide", "Divide two numbers.", divide, toolsrv.Example{Arguments: `{"a": 1, "b": 2}`, Result: "0.5"})
}
