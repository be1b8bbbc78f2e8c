package measure

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A Child is a part of a measurement that a command runs in a separate process.
type Child func(arguments []string, out io.Writer) error

// Main runs a command, whose context SIGINT and SIGTERM cancel, or the child that the first argument names. It returns the exit code.
func Main(name string, run func(ctx context.Context, arguments []string, out, log io.Writer) error, children map[string]Child) int {
	var err error
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		err = children[os.Args[1]](os.Args[2:], os.Stdout)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1
	}
	return 0
}

// Flags returns the flags of a command, including those that set p. The values in p are their defaults.
func (p *Plan) Flags(name string, log io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&p.Rounds, "rounds", p.Rounds, "how many turns each side has; the figures are medians")
	flags.DurationVar(&p.Span, "span", p.Span, "how long a turn takes")
	flags.StringVar(&p.Only, "only", "", "measure only the groups of these figures, separated by commas")
	return flags
}
