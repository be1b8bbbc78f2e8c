// Command goadd is the guest whose calls are compared: a tool made with the SDK.
package main

import (
	"github.com/toolsrv/toolsrv/bench/guests/add"
	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

var _ = toolsrv.Export(toolsrv.Module{Namespace: "bench", Tools: []toolsrv.Tool{
	toolsrv.Func("add", "Add two numbers.", func(_ *toolsrv.Call, in add.Terms) (float64, error) { return add.Sum(in), nil }),
}})

func main() {}
