package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/toolsrv/toolsrv/internal/text"
)

// showWaiting shows on a terminal what the command waits for, until done is called. A wait of a moment is not shown.
func showWaiting(w io.Writer, what string) (done func()) {
	if !isTerminal(w) {
		return func() {}
	}
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-stop:
			return
		case <-time.After(300 * time.Millisecond):
		}
		fmt.Fprintf(w, "%s ...", oneLine(what))
		<-stop
		fmt.Fprint(w, "\r\x1b[K") // back to the beginning of the line, and clear it
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-gone
	})
}

// isTerminal reports whether w is a terminal, which means that a person reads it.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// oneLine returns foreign text, such as a name or a path, in a form for one line of output, or for a cell of a table.
func oneLine(s string) string { return strings.Join(strings.Fields(text.Escape(s)), " ") }

// timeText returns a time with three or four digits.
func timeText(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Nanoseconds())/1e6)
	}
	return fmt.Sprintf("%.1f µs", float64(d.Nanoseconds())/1e3)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
