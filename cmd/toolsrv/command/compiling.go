package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/toolsrv/toolsrv/internal/core"
)

// compileTime is how long code may be compiled before a person is told why nothing answers.
const compileTime = time.Second

// compiles returns what reports whether a service compiles code, or loads it.
func compiles(tools *core.Service) func() bool {
	return func() bool {
		state := tools.Engine.Compiling()
		return state.Running+state.Queued > 0
	}
}

// tellCompiling says, once each time that code is compiled for more than compileTime, why the first answer takes long, until ctx ends.
func tellCompiling(ctx context.Context, busy func() bool, w io.Writer) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for began, told := time.Now(), false; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		switch {
		case !busy():
			began, told = time.Now(), false
		case !told && time.Since(began) > compileTime:
			told = true
			fmt.Fprint(w, "\nCompiling: the first start takes some seconds; later ones don't.\n")
		}
	}
}
