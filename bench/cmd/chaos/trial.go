package main

import (
	"context"
	"fmt"
	"io"
)

// A trial is a load beside the calls of tools, which judges what it was told in its own way. Its methods are called one at a time.
type trial interface {
	// name is what the report says of it.
	name() string
	// load goes on until ctx ends, and returns once all was answered.
	load(ctx context.Context, f fault, l *ledger)
	// verify returns what is not as it was told, and sums it up. All servers agree, and nobody changes anything.
	verify(ctx context.Context) (sum string, wrong []string)
}

// trials returns all of them. They need servers of this version.
func (w *world) trials() []trial {
	return []trial{&shelf{world: w}, &sessions{world: w}, &pace{world: w}, w.book}
}

// tableOfTrials prints what became of trials.
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
