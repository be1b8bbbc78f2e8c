package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// An Outcome tells, in a stable word, how a call ended.
type Outcome string

// The outcomes of a call.
const (
	OK            Outcome = "ok"
	ToolError     Outcome = "tool_error"      // the tool said that it failed
	ToolTrapped   Outcome = "tool_trapped"    // the tool's code broke
	ToolTimeout   Outcome = "tool_timeout"    // Limits.Timeout was over
	ToolFuel      Outcome = "tool_fuel"       // Limits.Fuel was used up
	ToolMemory    Outcome = "tool_memory"     // the tool broke after it had been refused memory
	ToolStack     Outcome = "tool_stack"      // the call stack was used up, or the one in the guest's memory
	ToolBadOutput Outcome = "tool_bad_output" // the tool ended well, but with a result that is none
	InputTooLarge Outcome = "input_too_large" // the input is larger than Limits.Input; nothing was run
	Cancelled     Outcome = "cancelled"       // the caller gave up, or the engine closes
	Overloaded    Outcome = "overloaded"      // the tool's queue is full, or the process has no room
	Internal      Outcome = "internal"        // none of the tool's doing
)

// An Error is why a call gave no result.
type Error struct {
	// Outcome is any but OK.
	Outcome Outcome
	// Message is a sentence for the client. It holds nothing of the host.
	Message string
	// Status, Code and Data are what the guest said of its failure (ToolError only). Status is an HTTP status, 400 to
	// 599, or 0 where the guest named none; Code and Data may be empty.
	Status int
	Code   string
	Data   json.RawMessage
	// Err is the cause for the log, with the guest's stack trace where there is one; nil where Message says all.
	Err error
}

// Error returns the message, and the cause where there is one.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + " " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A fault is what a host function panics with to end the guest. wazero recovers it and adds the guest's stack trace.
type fault struct {
	outcome Outcome
	message string
}

func (f *fault) Error() string { return f.message }

// An exit is the fault of proc_exit.
type exit struct{ code uint32 }

func (e *exit) Error() string { return fmt.Sprintf("proc_exit(%d)", e.code) }

// The first lines of wazero's traps. Their type is internal to wazero, so the text is what tells them apart;
// TestTraps pins it.
const (
	trapPrefix = "wasm error: "
	trapStack  = "stack overflow"
)

// classify is the one place where the end of a guest becomes an outcome. err is what wazero returned, not nil.
func (i *instance) classify(err error) *Error {
	var (
		refused   *Error // room in the account
		told      *fault
		ended     *exit
		hostPanic runtime.Error
		limits    = i.call.limits
	)
	line, _, _ := strings.Cut(err.Error(), "\n")
	broke := strings.Contains(line, trapPrefix)
	if errors.As(err, &told) {
		broke = told.outcome == ToolTrapped
	}
	switch {
	case errors.As(err, &refused):
		return refused
	case broke && i.overflown(): // whatever it was that the guest then stumbled over
		return &Error{Outcome: ToolStack, Message: "The tool used up the stack in its memory: it calls itself too deeply, or keeps too much in local variables. It has to be built with a larger one.",
			Err: clip(err)}
	case told != nil:
		return &Error{Outcome: told.outcome, Message: told.message, Err: clip(err)}
	case errors.Is(err, errTimeout):
		return &Error{Outcome: ToolTimeout, Message: fmt.Sprintf("The tool ran longer than its limit of %s.", limits.Timeout), Err: clip(err)}
	case errors.Is(err, errFuel):
		return &Error{Outcome: ToolFuel, Message: fmt.Sprintf("The tool ran for more than its limit of %d instructions.", limits.Fuel), Err: clip(err)}
	case errors.Is(err, errCancelled):
		return &Error{Outcome: Cancelled, Message: "The caller gave up before the tool was done.", Err: clip(err)}
	case errors.Is(err, errClosing):
		return closing(err)
	case errors.As(err, &hostPanic):
		return internal(err)
	case i.starved():
		return &Error{Outcome: ToolMemory, Message: fmt.Sprintf("The tool needed more memory than its limit of %s.", size(min(limits.Memory, i.most))), Err: clip(err)}
	case errors.As(err, &ended):
		return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool ended itself with exit code %d instead of returning.", ended.code), Err: clip(err)}
	case strings.HasSuffix(line, trapStack):
		return &Error{Outcome: ToolStack, Message: "The tool used up its call stack: it calls itself too deeply.", Err: clip(err)}
	case broke:
		_, trap, _ := strings.Cut(line, trapPrefix)
		return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool broke: %s.", trap), Err: clip(err)}
	}
	return internal(err)
}

// overflown reports whether the stack that the guest keeps in its memory, if it is known to have one, is used up.
func (i *instance) overflown() bool {
	return i.linear != nil && i.linear.Overflown(uint32(i.globals[i.linear.Pointer].Get()), i.guest.Memory().Size())
}

func closing(err error) *Error {
	return &Error{Outcome: Cancelled, Message: "The service is shutting down.", Err: err}
}

// overloaded is the error of a call for which the process has no room. err, if any, is what the system said.
func overloaded(err error) *Error {
	return &Error{Outcome: Overloaded, Message: "The service has no memory left for this call: others use it.", Err: err}
}

// scarce reports whether the system refused memory or a descriptor.
func scarce(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// failed is overloaded where the system refused something, and internal otherwise.
func failed(err error) *Error {
	if scarce(err) {
		return overloaded(err)
	}
	return internal(err)
}

func internal(err error) *Error {
	return &Error{Outcome: Internal, Message: "The tool could not be run.", Err: clip(err)}
}

// badOutput is the error of a guest that ended well with a result that is none.
func badOutput(format string, args ...any) *Error {
	return &Error{Outcome: ToolBadOutput, Message: fmt.Sprintf(format, args...)}
}

// notBegun is the error of a call whose time was over, or whose caller gave up, while it waited for what.
func notBegun(ctx context.Context, what string, timeout time.Duration) *Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return &Error{Outcome: ToolTimeout, Message: fmt.Sprintf("The tool's limit of %s was over while the call waited for %s.", timeout, what)}
	case errors.Is(cause, errClosing):
		return closing(nil)
	}
	return &Error{Outcome: Cancelled, Message: fmt.Sprintf("The caller gave up while the call waited for %s.", what), Err: context.Cause(ctx)}
}

// A clipped error is one whose text is bounded: function names in a stack trace are the guest's.
type clipped struct{ error }

const maxTrace = 16 << 10 // bytes

func clip(err error) error { return clipped{err} }

func (c clipped) Error() string {
	text := strings.Replace(c.error.Error(), " (recovered by wazero)\n", "\n", 1) // which tells nobody anything
	if len(text) > maxTrace {
		return strings.ToValidUTF8(text[:maxTrace], "") + "..."
	}
	return text
}

func (c clipped) Unwrap() error { return c.error }

// size writes a number of bytes as people do.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// maxDepth is how deeply a guest's JSON may be nested. Clients decode it, and many do so recursively.
const maxDepth = 1000

// checkJSON reports why text is no JSON that clients can be given, or nil.
func checkJSON(text []byte) error {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("it is empty")
	case !utf8.Valid(text):
		return fmt.Errorf("it is not UTF-8")
	}
	switch i, depth := scanJSON(text); {
	case depth > maxDepth:
		return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	case i != len(text):
		return fmt.Errorf("it is not valid JSON")
	}
	return nil
}

// What scanJSON waits for.
const (
	awaitValue   = iota
	awaitElement // or the end of an array
	awaitMember  // or the end of an object
	awaitName
	awaitNext // a comma, or an end
)

// scanJSON reads one JSON text and returns where it stopped: at the end of b if b is valid, and before what does not
// belong there otherwise; and how deeply it was nested there, where that is too deep. It does what json.Valid does, in half
// the time, and in a tenth of it for strings: for a small guest that is more than all the rest of a call. FuzzJSON compares both.
func scanJSON(b []byte) (end, depth int) {
	var objects [maxDepth/64 + 1]uint64 // one bit for each level
	await := awaitValue
	for i := 0; ; {
		for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
			i++
		}
		if i == len(b) {
			if await != awaitNext || depth > 0 {
				return -1, depth
			}
			return i, depth
		}
		c, next := b[i], -1
		switch inObject := objects[depth/64]>>(depth%64)&1 == 1; {
		case await == awaitNext:
			switch {
			case depth == 0:
				return -1, depth
			case c == ',' && inObject:
				await, next = awaitName, i+1
			case c == ',':
				await, next = awaitValue, i+1
			case c == '}' && inObject, c == ']' && !inObject:
				depth, next = depth-1, i+1
			}
		case c == '}' && await == awaitMember, c == ']' && await == awaitElement:
			await, depth, next = awaitNext, depth-1, i+1
		case await == awaitName, await == awaitMember:
			if c == '"' {
				await, next = awaitValue, scanColon(b, scanString(b, i+1))
			}
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return -1, depth
			}
			await, next = awaitElement, i+1
			objects[depth/64] &^= 1 << (depth % 64)
			if c == '{' {
				await = awaitMember
				objects[depth/64] |= 1 << (depth % 64)
			}
		default:
			await, next = awaitNext, scanScalar(b, i)
		}
		if next < 0 {
			return -1, depth
		}
		i = next
	}
}

// scanScalar returns the index behind the string, number or word at i, or -1.
func scanScalar(b []byte, i int) int {
	word := ""
	switch b[i] {
	case '"':
		return scanString(b, i+1)
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return scanNumber(b, i)
	}
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

// scanColon returns the index behind the colon that follows at i, or -1.
func scanColon(b []byte, i int) int {
	if i < 0 {
		return -1
	}
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	if i == len(b) || b[i] != ':' {
		return -1
	}
	return i + 1
}

// scanString returns the index behind the string whose content begins at i, or -1. It looks at eight bytes at a time
// until there is a quote, a backslash or a control character among them.
func scanString(b []byte, i int) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for {
		for ; i+8 <= len(b); i += 8 {
			v := binary.LittleEndian.Uint64(b[i:])
			quote, escape := v^each*'"', v^each*'\\'
			if found := ((v-each*' ')&^v | (quote-each)&^quote | (escape-each)&^escape) & high; found != 0 {
				i += bits.TrailingZeros64(found) / 8 // the lowest one is right, whatever was borrowed above it
				break
			}
		}
		if i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c != '\\':
			i++ // among the last seven bytes
			continue
		}
		if i++; i == len(b) {
			return -1
		}
		switch b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i++
		case 'u':
			for range 4 {
				if i++; i == len(b) || !isHex(b[i]) {
					return -1
				}
			}
			i++
		default:
			return -1
		}
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// scanNumber returns the index behind the number at i, or -1.
func scanNumber(b []byte, i int) int {
	digits := func() bool {
		from := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

// maxToolCode is the longest code in a guest's failure, in bytes.
const maxToolCode = 128

// parseFailure reads the JSON of fail. It is strict, because a misspelt member would silently change what clients see.
func parseFailure(text []byte) (*Error, error) {
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf(`it is no object with a "message"`)
	}
	e := &Error{Outcome: ToolError}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, fmt.Errorf("it cannot be read: %w", err)
		}
		if seen[name] {
			return nil, fmt.Errorf("the member %.40q stands there twice", name)
		}
		seen[name] = true
		switch name {
		case "message":
			err = d.Decode(&e.Message)
		case "code":
			err = d.Decode(&e.Code)
		case "status":
			err = d.Decode(&e.Status)
		case "data":
			err = d.Decode(&e.Data)
		default:
			return nil, fmt.Errorf("the member %.40q is unknown: message, code, status and data are known", name)
		}
		if err != nil {
			return nil, fmt.Errorf("the member %q is of the wrong type", name)
		}
	}
	switch {
	case e.Message == "":
		return nil, fmt.Errorf("the message is missing")
	case len(e.Code) > maxToolCode:
		return nil, fmt.Errorf("the code has %d bytes, the limit is %d", len(e.Code), maxToolCode)
	case seen["status"] && (e.Status < 400 || e.Status > 599):
		return nil, fmt.Errorf("the status is %d, not 400 to 599", e.Status)
	}
	return e, nil
}

// result is what a guest that returned from toolsrv_call or toolsrv_describe has to say.
func (c *call) result(returned uint32) ([]byte, error) {
	switch returned {
	case 0:
		return c.checkedOutput()
	case 1:
		if c.failure == nil {
			return nil, badOutput("The tool told that it failed, but not why: it returned 1 without a call of fail.")
		}
		e, err := parseFailure(c.failure)
		if err != nil {
			return nil, badOutput("The tool reported its failure with JSON that does not fit: %s.", err)
		}
		return nil, e
	}
	return nil, badOutput("The tool returned %d instead of 0 (done) or 1 (failed).", int32(returned))
}

// exited is what a plain WASI program has to say that ended with that exit code.
func (c *call) exited(code uint32) ([]byte, error) {
	if code == 0 {
		return c.checkedOutput()
	}
	message := fmt.Sprintf("The tool ended with exit code %d.", code)
	if len(c.lines.last) > 0 {
		message = string(bytes.ToValidUTF8(bytes.TrimSpace(c.lines.last), []byte("\uFFFD")))
	}
	return nil, &Error{Outcome: ToolError, Message: message}
}

func (c *call) checkedOutput() ([]byte, error) {
	if c.output == nil {
		return nil, badOutput("The tool ended without any output.")
	}
	if err := checkJSON(c.output); err != nil {
		return nil, badOutput("The tool's output is no JSON: %s.", err)
	}
	return c.output, nil
}
