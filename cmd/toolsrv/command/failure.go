package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// exitOf returns the exit code that says how a call ended.
func exitOf(code wasmtools.Code) int {
	switch code {
	case wasmtools.CodeInvalidArguments:
		return exitInvalidArguments
	case wasmtools.CodeToolError:
		return exitToolError
	case wasmtools.CodeToolTrapped:
		return exitToolTrapped
	case wasmtools.CodeToolBadOutput:
		return exitToolBadOutput
	case wasmtools.CodeToolTimeout:
		return exitToolTimeout
	case wasmtools.CodeToolFuel:
		return exitToolFuel
	case wasmtools.CodeToolMemory:
		return exitToolMemory
	case wasmtools.CodeToolStack:
		return exitToolStack
	case wasmtools.CodeInputTooLarge:
		return exitInputTooLarge
	case wasmtools.CodeToolNotGranted:
		return exitToolNotGranted
	}
	return exitFailed
}

// tellFailure prints why a call failed, and returns its exit code.
func tellFailure(stderr io.Writer, err error, asJSON bool) error {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if !ok {
		failed = &wasmtools.Error{Code: wasmtools.CodeInternal, Err: err}
	}
	if asJSON {
		_, body := web.Failure(failed)
		fmt.Fprintf(stderr, "%s\n", body)
	} else {
		fmt.Fprintf(stderr, "toolsrv: %s", failureText(failed))
	}
	return &exitError{code: exitOf(failed.Code)}
}

// failureText returns an error for people, in lines: what a client sees, and what only the operator's log would show.
func failureText(e *wasmtools.Error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Code, text.Escape(e.Message))
	for _, v := range e.Violations {
		place := make([]string, 0, len(v.Loc))
		for _, step := range v.Loc[min(1, len(v.Loc)):] { // the first element is "body"
			place = append(place, fmt.Sprint(step))
		}
		switch {
		case len(place) == 0:
			place = append(place, "(all)")
		case v.Type == "json_invalid":
			place[0] = "at byte " + place[0]
		}
		fmt.Fprintf(&b, "  %s: %s%s\n", oneLine(strings.Join(place, ".")), oneLine(v.Msg), moreOf(v))
	}
	if e.ToolCode != "" {
		fmt.Fprintf(&b, "  code: %s\n", text.Escape(e.ToolCode))
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, "  status: %d\n", e.Status)
	}
	if len(e.Data) > 0 {
		fmt.Fprintf(&b, "  data: %s\n", text.Escape(string(e.Data)))
	}
	if e.Err != nil {
		cause := strings.ReplaceAll(strings.TrimSpace(e.Err.Error()), "\n", "\n  ")
		fmt.Fprintf(&b, "  %s\n", text.Escape(cause))
	}
	trace := ""
	if e.Err != nil {
		trace = e.Err.Error()
	}
	if says := toolfile.Advice(e.Message + "\n" + trace); says != "" { // the log has advice about what the tool printed
		fmt.Fprintf(&b, "  what to do: %s\n", says)
	}
	return b.String()
}

// moreOf returns what to print after a violation's message: what is wrong with the JSON, or the value if it is short.
func moreOf(v misfit.Violation) string {
	const short = 40
	if cause, ok := v.Ctx["error"].(string); ok && !strings.Contains(v.Msg, cause) {
		return ": " + oneLine(cause)
	}
	if v.Type == "missing" || len(v.Input) > short {
		return ""
	}
	return " (got " + oneLine(string(v.Input)) + ")"
}

// The exit codes of `toolsrv call`, in addition to those of all commands. They are stable.
const (
	exitInvalidArguments = 3
	exitToolError        = 4
	exitToolTrapped      = 5
	exitToolBadOutput    = 6
	exitToolTimeout      = 7
	exitToolFuel         = 8
	exitToolMemory       = 9
	exitToolStack        = 10
	exitInputTooLarge    = 11
	exitToolNotGranted   = 12
)
