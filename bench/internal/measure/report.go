package measure

import (
	"fmt"
	"io"
)

// A Bar is what a figure must reach.
type Bar struct {
	Limit float64
	Least bool // the figure must be at least the limit; otherwise at most
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

// Explain says to people what a figure is made of.
func (r *Report) Explain(format string, arguments ...any) {
	fmt.Fprintf(r.Log, "# "+format+"\n", arguments...)
}

// End prints a line for each figure that fell short.
func (r *Report) End() {
	for _, line := range r.short {
		fmt.Fprintln(r.Out, line)
	}
}
