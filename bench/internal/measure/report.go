package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Bar is what a figure must reach.
type Bar struct {
	Limit float64
	Least bool // the figure must be at least the limit, rather than at most
}

// A Report prints figures, one line "name value" for each, and remembers those that fall short of their bars.
type Report struct {
	Out  io.Writer
	Log  io.Writer // for explanations
	Bars map[string]Bar

	short []string
}

// Figure prints a figure.
func (r *Report) Figure(name string, value float64) {
	fmt.Fprintf(r.Out, "%s %.4g\n", name, value)
	bar, ok := r.Bars[name]
	switch {
	case ok && bar.Least && value < bar.Limit:
		r.short = append(r.short, fmt.Sprintf("short %s %.4g, the bar is at least %g", name, value, bar.Limit))
	case ok && !bar.Least && value > bar.Limit:
		r.short = append(r.short, fmt.Sprintf("short %s %.4g, the bar is at most %g", name, value, bar.Limit))
	}
}

// Explain prints, for people, what a figure is made of.
func (r *Report) Explain(format string, arguments ...any) {
	fmt.Fprintf(r.Log, "# "+format+"\n", arguments...)
}

// End prints a line for each figure that fell short.
func (r *Report) End() {
	for _, line := range r.short {
		fmt.Fprintln(r.Out, line)
	}
}

// A Group is a group of figures that are measured together.
type Group struct {
	Names   []string
	Measure func(context.Context) error
}

// A Plan says how groups are measured.
type Plan struct {
	Rounds int           // how many turns each side gets
	Span   time.Duration // of a turn
	// Only names the figures whose groups are measured, separated by commas; if empty, all are.
	Only string
}

// Run measures groups, and ends the report. A group that can't be measured does not stop the others.
func (r *Report) Run(ctx context.Context, p Plan, groups []Group) error {
	begun := time.Now()
	r.Explain("%s, %s/%s, GOMAXPROCS %d, %d rounds of %v a side", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), p.Rounds, p.Span)
	wanted := func(name string) bool { return p.Only == "" || slices.Contains(strings.Split(p.Only, ","), name) }
	var errs []error
	for _, g := range groups {
		if !slices.ContainsFunc(g.Names, wanted) {
			continue
		}
		if err := g.Measure(ctx); err != nil {
			errs = append(errs, fmt.Errorf("could not measure %s: %w", strings.Join(g.Names, ", "), err))
		}
	}
	r.End()
	r.Explain("took %v", time.Since(begun).Round(time.Second))
	return errors.Join(errs...)
}
