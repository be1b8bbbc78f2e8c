// Command vet is a tool whose log lines go vet has to find wrong: TestVet compares.
package main

import (
	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolslog"
)

type in struct {
	Name string `json:"name"`
}

func greet(c *toolsrv.Call, in in) (string, error) {
	c.Debugf("%d greets", in.Name)         // want: %d
	c.Infof("%s greets %s", in.Name)       // want: arg #2
	c.Warnf("greets", in.Name)             // want: no formatting directives
	c.Errorf("%z", in.Name)                // want: verb
	toolslog.New(c).Info("greets", "name") // want: final value
	c.Infof("%s greets", in.Name)
	toolslog.New(c).Info("greets", "name", in.Name)
	return in.Name, nil
}

var _ = toolsrv.Export(toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("greet", "Greet.", greet)}})

func main() {}
