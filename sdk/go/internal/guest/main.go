// Command guest is a module with a tool for each way in which a call of this SDK's guests can end. Tests of the host
// build it and run it; no author needs it.
package main

import (
	"fmt"
	"log/slog"
	"math"
	"os"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolslog"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrand"
)

type nothing struct{}

type text struct {
	Text string `json:"text"`
}

type tree struct {
	Name string `json:"name"`
	Kids []tree `json:"kids,omitempty"`
}

var _ = toolsrv.Export(toolsrv.Module{
	Namespace: "guest",
	Version:   "0.0.1",
	Tools: []toolsrv.Tool{
		toolsrv.Func("echo", "Return the text.", func(_ *toolsrv.Call, in text) (string, error) { return in.Text, nil }),
		toolsrv.Func("tree", "Return the tree.", func(_ *toolsrv.Call, in tree) (*tree, error) { return &in, nil }),
		toolsrv.Func("nil", "Return a nil slice.", func(*toolsrv.Call, nothing) ([]int, error) { return nil, nil }),
		toolsrv.Func("refuse", "Fail with a plain error.", func(_ *toolsrv.Call, in text) (any, error) {
			return nil, fmt.Errorf("no: %s", in.Text)
		}),
		toolsrv.Func("reject", "Fail with all that an error can carry.", func(*toolsrv.Call, nothing) (any, error) {
			return nil, fmt.Errorf("row 3: %w", &toolsrv.Error{Code: "taken", Message: "It is taken.", Status: 409, Data: []int{1, 2}})
		}),
		toolsrv.Func("nan", "Return what JSON can't express.", func(*toolsrv.Call, nothing) (float64, error) { return math.NaN(), nil }),
		toolsrv.Func("nan_data", "Fail with what JSON can't express.", func(*toolsrv.Call, nothing) (any, error) {
			return nil, &toolsrv.Error{Message: "No.", Data: math.NaN()}
		}),
		toolsrv.Func("status", "Fail with a status that is none.", func(*toolsrv.Call, nothing) (any, error) {
			return nil, &toolsrv.Error{Message: "No.", Status: 200}
		}),
		toolsrv.Func("panic", "Panic.", func(_ *toolsrv.Call, in text) (any, error) { panic(in.Text) }),
		toolsrv.Func("exit", "Exit.", func(*toolsrv.Call, nothing) (any, error) { os.Exit(0); return nil, nil }),
		toolsrv.Func("log", "Log a line of each level.", func(c *toolsrv.Call, _ nothing) (nothing, error) {
			c.Debugf("d %d", 1)
			c.Infof("i")
			c.Warnf("w")
			c.Errorf("e")
			toolslog.New(c).Info("slog", slog.Int("n", 2))
			fmt.Println("stdout")
			fmt.Fprintln(os.Stderr, "stderr")
			return nothing{}, nil
		}),
		toolsrv.Func("count", "Count the calls of this instance: 1.", count()),
		toolsrv.Func("random", "Return a random number.", func(*toolsrv.Call, nothing) (int64, error) {
			return toolsrand.New().Int64(), nil
		}),
	},
})

func main() {}

// count returns a tool that keeps state, as no tool should: it must not survive a call.
func count() func(*toolsrv.Call, nothing) (int, error) {
	calls := 0
	return func(*toolsrv.Call, nothing) (int, error) {
		calls++
		return calls, nil
	}
}
