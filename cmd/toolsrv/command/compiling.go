package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/toolsrv/toolsrv/internal/core"
)

// compileTime is how long compiling may take before a message says why nothing answers.
const compileTime = time.Second

// compiles returns a function that reports whether a service is compiling or loading code.
func compiles(tools *core.Service) func() bool {
	return func() bool {
		state := tools.Engine.Compiling()
		return state.Running+state.Queued > 0
	}
}

// tellCompiling prints why the first answer takes long, once each time that compiling takes more than compileTime, until ctx ends.
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
