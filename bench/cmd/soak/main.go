// Command soak makes an hour's worth of calls in a few minutes, and fails if anything grows: memory, file descriptors, memory mappings, goroutines,
// latency. For two thirds of the time it makes calls of all kinds in the sandbox: good ones, and ones that trap, spin, grow or are cancelled. In the
// last third it makes calls over HTTP while files are replaced.
//
//	soak -guests DIRECTORY [-duration 3m] [-tools 0]
//
// `make soak` builds what is needed. Figures go to stdout, one line for each window of time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() { os.Exit(measure.Main("soak", run, nil)) }

func run(ctx context.Context, arguments []string, out, _ io.Writer) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	guests := flags.String("guests", "build/bench", "the directory of the built guests")
	duration := flags.Duration("duration", 3*time.Minute, "how long")
	tools := flags.Int("tools", 0, "how many further tools the server has; half of the requests go to them in turn")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	var errs []error
	for _, l := range []struct {
		name string
		run  func(ctx context.Context, shelf guest.Shelf, w *watch) error
		part time.Duration
	}{
		{"sandbox", soakSandbox, *duration * 2 / 3},
		{"http", whole(*tools).soak, *duration / 3},
	} {
		w := &watch{name: l.name, span: l.part / windows, out: out}
		if err := l.run(ctx, guest.Shelf(*guests), w); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.name, err))
			continue
		}
		if err := w.judge(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}
