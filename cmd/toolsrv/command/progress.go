package command

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"

	"golang.org/x/term"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A progressLine shows the progress reports of a call: on a terminal as one changing line, elsewhere one line each. It is the listener of the call.
type progressLine struct {
	w      io.Writer
	asJSON bool
	width  int  // columns of the terminal; 0 if there is no terminal
	shown  bool // the terminal shows a line that has to be cleared
}

// newProgressLine returns a progressLine that writes to w.
func newProgressLine(w io.Writer, asJSON bool) *progressLine {
	p := &progressLine{w: w, asJSON: asJSON}
	if file, ok := w.(*os.File); ok && isTerminal(w) && !asJSON {
		const least, usual = 20, 80
		p.width = usual
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width >= least {
			p.width = width
		}
	}
	return p
}

// Log clears the line, since a log line is about to be written in its place.
func (p *progressLine) Log(slog.Level, string, string) { p.clear() }

// Progress shows a report.
func (p *progressLine) Progress(done, total float64, message string) {
	switch {
	case p.asJSON:
		report := map[string]any{"done": done, "message": message}
		if total > 0 {
			report["total"] = total
		}
		b, err := json.Marshal(map[string]any{"progress": report})
		if err == nil { // this can't fail: numbers are finite, and the text is UTF-8
			fmt.Fprintf(p.w, "%s\n", escapeJSON(b))
		}
	case p.width == 0:
		fmt.Fprintf(p.w, "progress: %s\n", progressText(done, total, message))
	default:
		p.clear()
		fmt.Fprint(p.w, fit(progressText(done, total, message), p.width-1))
		p.shown = true
	}
}

// clear clears the line of a terminal.
func (p *progressLine) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K") // back to the beginning of the line, and clear it
		p.shown = false
	}
}

// progressText returns a report for people.
func progressText(done, total float64, message string) string {
	s := number(done)
	if total > 0 {
		s = fmt.Sprintf("%d %%, %s of %s", int(math.Floor(100*(done/total))), s, number(total))
	}
	if message = oneLine(message); message != "" {
		s += ": " + message
	}
	return s
}

// number returns a number with the digits that matter to people.
func number(f float64) string {
	if f >= 1e15 || f > 0 && f < 1e-3 {
		return strconv.FormatFloat(f, 'g', 4, 64)
	}
	return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64)
}

// fit cuts a line to that many columns. A character may take two columns.
func fit(line string, columns int) string {
	wide := 0
	for i, r := range line {
		if wide++; r >= 0x1100 { // the first character that may be wide
			wide++
		}
		if wide > columns {
			return line[:i]
		}
	}
	return line
}

var _ wasmtools.Listener = (*progressLine)(nil)
