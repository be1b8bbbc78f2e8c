// Package answer is how the functions of all capabilities answer a guest, which docs/abi.md describes: a function returns the number of
// bytes to read, negative for a failure, and answer_read copies them into memory that the guest provides. An answer stays until the next
// answer of the same set.
package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// The codes of failures that all capabilities have.
const (
	NotGranted  = hostcall.NotGranted // the tool does not declare it, or was not granted it
	Invalid     = "invalid"           // the guest's arguments make no sense
	TooLarge    = "too_large"         // the guest passed too much, or would get too much
	Limit       = "limit"             // too many uses in one call, or in all calls together
	Unavailable = "unavailable"       // the other side can't be reached, or is busy
	Timeout     = "timeout"
)

// A Failure is what a guest gets when a function has failed.
type Failure struct {
	// Code is a stable word.
	Code string `json:"code"`
	// Message is for people: what was asked, what is allowed, and what to do. It never contains a secret.
	Message string `json:"message"`
	// ToolCode and Data come from another tool's failure. They may be empty.
	ToolCode string          `json:"tool_code,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Failf returns a failure with a message.
func Failf(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// NotDeclared returns the failure of a tool that uses a capability that it doesn't have, because it does not declare the capability or is
// still starting. A tool that declares something it was not granted is never called.
func NotDeclared(c *hostabi.Call, capability string) *Failure {
	if !c.Serving() {
		return Failf(NotGranted, "The tool can't use %s while it starts: use it in a call.", capability)
	}
	return Failf(NotGranted, "The tool does not declare that it needs %s: add it to the needs of its manifest.", capability)
}

// A local is what a set of functions keeps for one call of a tool.
type local struct {
	own    any
	closes func() // nil if there is nothing to close
	answer []byte
	held   int64 // bytes that the memory account holds for the answer
}

var _ hostcall.Local = (*local)(nil)

// of returns what the function's set keeps for the call.
func of(c *hostabi.Call) *local {
	if s, ok := (*hostcall.Call)(c).Local().(*local); ok {
		return s
	}
	s := &local{}
	(*hostcall.Call)(c).Keep(s)
	return s
}

// End releases what is kept when the call ends.
func (s *local) End(*hostcall.Call) {
	if s.closes != nil {
		s.closes()
	}
}

// Keep makes the call keep a value for the function's set until the call ends, in place of the value before. At the end of the call,
// closes is called if it is not nil.
func Keep(c *hostabi.Call, value any, closes func()) {
	s := of(c)
	s.own, s.closes = value, closes
}

// Kept returns what the call keeps for the function's set, or nil.
func Kept(c *hostabi.Call) any {
	if s, ok := (*hostcall.Call)(c).Local().(*local); ok {
		return s.own
	}
	return nil
}

// Give answers the function with b. It keeps b, so the caller must not change it afterwards. b has less than 2 GiB. Its bytes are
// charged to the process's memory account, so a caller that has already charged bytes of b there must give them back first.
func Give(c *hostabi.Call, stack []uint64, b []byte) {
	of(c).keep(c, b)
	stack[0] = uint64(uint32(len(b)))
}

// The charges for answers, in nanoseconds.
const (
	failCost      = 1000 // for making and writing a failure's message
	failByteCost  = 10   // for each byte of the message, which may be escaped twice
	bytesKeptNano = 4    // bytes of an answer that are made, and later collected, in one nanosecond
)

// Fail answers with a failure, and charges for it.
func Fail(c *hostabi.Call, stack []uint64, f *Failure) {
	c.Charge(failCost + failByteCost*(len(f.Message)+len(f.ToolCode)+len(f.Data)))
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil { // Data is not JSON
		text.Reset()
		_ = e.Encode(Failure{Code: f.Code, Message: f.Message})
	}
	b := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	of(c).keep(c, b)
	stack[0] = uint64(uint32(-int32(len(b))))
}

func (s *local) keep(c *hostabi.Call, b []byte) {
	if len(b) > math.MaxInt32 {
		panic(fmt.Sprintf("an answer has %d bytes", len(b)))
	}
	c.Charge(len(b) / bytesKeptNano)
	c.Hold(int64(len(b)) - s.held)
	s.answer, s.held = b, int64(len(b))
}

// Read returns the function answer_read, which each set has.
func Read() hostabi.Function {
	// (ptr)
	// Copies the last answer of a function of the same module to `ptr`, if the guest has made room for it. The answer stays until the next
	// one; without an answer it is a trap.
	return hostabi.Function{Name: "answer_read", Params: "i", Do: func(c *hostabi.Call, stack []uint64) {
		s, ok := (*hostcall.Call)(c).Local().(*local)
		if !ok || s.answer == nil {
			c.Trap("it called answer_read before any other function of the same import module had answered")
		}
		c.Write(stack[0], s.answer)
	}}
}
