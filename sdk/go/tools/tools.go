// Package tools calls other tools of the same server, as far as the operator lets the tool. The tool declares their paths ([toolsrv.Needs])
// and the operator grants them. Such a call is like any other by the same client: arguments are validated, and a client's tools may not
// call what the client may not.
package tools

import (
	"encoding/json"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/capability"
	"github.com/toolsrv/toolsrv/sdk/go/internal/typed"
)

// Call calls the tool of a path, such as "units/convert", with arguments, whose JSON is an object, and returns its result. An R of
// json.RawMessage takes any result as it is.
//
//	length, err := tools.Call[float64](c, "units/convert", conversion{Value: 3, From: "mi", To: "km"})
//
// The error is a [*toolsrv.Failure] with a common code, "depth" if calls are nested too deeply, or the code that a client would see:
// "tool_error" where the tool itself failed, and its own code is then in ToolCode.
func Call[R any](c *toolsrv.Call, path string, arguments any) (result R, err error) {
	text, err := typed.Encode(arguments)
	if err != nil {
		return result, &toolsrv.Failure{Code: "invalid", Message: "the arguments of " + path + " can't be written as JSON: " + err.Error()}
	}
	answer, err := capability.Call(c, path, text)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return result, &toolsrv.Failure{Code: "invalid", Message: "the result of " + path + " is not what was expected: " + err.Error()}
	}
	return result, nil
}
