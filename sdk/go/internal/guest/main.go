// Command guest is a module with what only guests in Go can do to a call; the guest of the conformance kit does what all languages can do.
// Tests of the host build it and run it; no author needs it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolslog"
)

type nothing struct{}

type tree struct {
	Name string `json:"name"`
	Kids []tree `json:"kids,omitempty"`
}

var _ = toolsrv.Export(toolsrv.Module{
	Namespace: "guest",
	Version:   "0.0.1",
	Tools: []toolsrv.Tool{
		toolsrv.Func("tree", "Return the tree.", func(_ *toolsrv.Call, in tree) (*tree, error) { return &in, nil }),
		toolsrv.Func("wrap", "Fail with an error within another.", func(*toolsrv.Call, nothing) (any, error) {
			return nil, fmt.Errorf("row 3: %w", &toolsrv.Error{Code: "taken", Message: "It is taken.", Status: 409, Data: []int{1, 2}})
		}),
		toolsrv.Func("nan", "Return what JSON can't express.", func(*toolsrv.Call, nothing) (float64, error) { return math.NaN(), nil }),
		toolsrv.Func("nan_data", "Fail with what JSON can't express.", func(*toolsrv.Call, nothing) (any, error) {
			return nil, &toolsrv.Error{Message: "No.", Data: math.NaN()}
		}),
		toolsrv.Func("exit", "Exit.", func(*toolsrv.Call, nothing) (any, error) { os.Exit(0); return nil, nil }),
		toolsrv.Func("log", "Log by package slog, and to the standard streams.", func(c *toolsrv.Call, _ nothing) (nothing, error) {
			c.Debugf("d %d", 1)
			toolslog.New(c).Info("slog", slog.Int("n", 2))
			fmt.Println("stdout")
			fmt.Fprintln(os.Stderr, "stderr")
			return nothing{}, nil
		}),
		toolsrv.Func("context", "Return how many seconds a context made of the call has.", func(c *toolsrv.Call, _ nothing) (float64, error) {
			ctx, cancel := context.WithTimeout(c, time.Hour)
			defer cancel()
			deadline, _ := ctx.Deadline()
			return time.Until(deadline).Seconds(), ctx.Err()
		}),
	},
})

func main() {}
