package main

import (
	"context"
	"fmt"
	"io"
)

// A trial is an additional load, which judges its answers by its own rules. Its methods are called one at a time.
type trial interface {
	// name is the trial's name in the report.
	name() string
	// load continues until ctx ends, and returns when everything is answered.
	load(ctx context.Context, f fault, l *ledger)
	// verify returns how the servers differ from what their answers said, and a summary. All servers agree by then, and nobody makes changes.
	verify(ctx context.Context) (sum string, wrong []string)
}

// trials returns all trials. They need servers of this version.
func (w *world) trials() []trial {
	return []trial{&shelf{world: w}, &sessions{world: w}, &pace{world: w}, w.book}
}

// tableOfTrials prints the results of trials.
func tableOfTrials(out io.Writer, trials []trial, rows []row) {
	fmt.Fprint(out, "\n| what failed |")
	for _, t := range trials {
		fmt.Fprintf(out, " %s |", t.name())
	}
	fmt.Fprint(out, "\n|---|")
	for range trials {
		fmt.Fprint(out, "---|")
	}
	fmt.Fprintln(out)
	for _, r := range rows {
		if len(r.sums) == 0 {
			continue
		}
		fmt.Fprintf(out, "| %s |", r.name)
		for _, sum := range r.sums {
			fmt.Fprintf(out, " %s |", sum)
		}
		fmt.Fprintln(out)
	}
}
