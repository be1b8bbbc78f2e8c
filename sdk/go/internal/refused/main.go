// Command refused is a module that can't be described. Tests of the host build it to see that its author learns why.
package main

import toolsrv "github.com/toolsrv/toolsrv/sdk/go"

type arguments struct {
	Items []struct {
		Done chan bool `json:"done"`
	} `json:"items"`
}

var _ = toolsrv.Export(toolsrv.Module{Tools: []toolsrv.Tool{
	toolsrv.Func("wait", "Wait.", func(*toolsrv.Call, arguments) (any, error) { return nil, nil }),
}})

func main() {}
