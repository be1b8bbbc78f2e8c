// Package tools is the import module toolsrv_tools_v1, by which a tool calls other tools of its server.
//
// A tool's call is like a client's: it goes through package invoker, with the principal of the outer call. A tool that this principal may not call
// does not exist for the calling tool either. The inner call uses up the outer call's time and fuel, and the outer call waits for it. See
// [hostcall.Outer] for how calls are kept from waiting for each other.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// Module is the name of the import module.
const Module = "toolsrv_tools_v1"

// MaxDepth is how many levels of calls there can be below the call of a client.
const MaxDepth = 8

// Depth is the failure code of a call that would be nested more than MaxDepth levels deep.
const Depth = "depth"

// These are what a call of a tool is charged in addition to what the tool itself uses, in nanoseconds.
const (
	callCost = 5000 // for finding the tool, and for leasing and resetting an instance
	byteCost = 20   // for validating each byte of its arguments

	violationCost = 100 // for each byte of invalid arguments, which are validated again to locate the errors
)

// maxID bounds the name of a tool, in bytes.
const maxID = 1000

// maxData bounds how much of a tool's failure data is passed on, in bytes.
const maxData = 64 << 10

// A Service has the tools of a server, and an invoker that calls them. It is safe for concurrent use.
type Service struct {
	// Invoker calls them.
	Invoker *invoker.Invoker
	// Table returns the table of the served tools.
	Table func() *wasmtools.RouteTable
	// Logger gets a line for failures that are not a tool's fault. Nil discards.
	Logger *slog.Logger
}

// A permission is what a tool may call.
type permission struct {
	service *Service
	paths   []string // such as "/units/convert"
}

// Equal reports whether another grant allows the same calls.
func (g *permission) Equal(other any) bool {
	o, ok := other.(*permission)
	return ok && g.service == o.service && slices.Equal(g.paths, o.paths)
}

// Grant returns the grant of a tool that may call the tools with these paths, such as "units/convert", whether these exist or not.
func Grant(s *Service, tools ...string) hostcall.Grant {
	g := &permission{service: s}
	for _, t := range tools {
		g.paths = append(g.paths, "/"+strings.TrimPrefix(t, "/"))
	}
	return hostcall.Grant{Module: Module, Value: g}
}

// An Origin is a call of a tool. The functions of this package find it as the Principal of their [hostcall.Call]. Nested calls use its principal and
// generation.
type Origin wasmtools.Call

// String returns the caller's name.
func (o *Origin) String() string { return o.Principal.String() }

// Party returns the party to which the call belongs while it waits for its turn.
func (o *Origin) Party() string { return rates.Party((*wasmtools.Call)(o)) }

// Who returns the caller.
func (o *Origin) Who() *wasmtools.Principal { return o.Principal }

// Set returns the functions, with their entries in docs/generated/functions.md.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Nests: true, Functions: []hostabi.Function{
		// (id, id_len, args, args_len)
		// Calls a tool, by its path (`units/convert`) or its operation id (`units-convert`), with a JSON object as arguments, and answers with its result:
		// [like a client's call](capabilities.md#tools), within the outer call's time and fuel. The code of a failure is the called tool's, as
		// [clients see it](generated/errors.md). For `tool_error` the tool's own `tool_code` and `data` are members of the failure; for `invalid_arguments`,
		// `data` is the list of violations. A tool that does not exist and one that the caller may not call are both `not_found`. Too many calls inside
		// each other are `depth`. `toolsrv/caller`, where it is declared and granted, answers [who calls](capabilities.md#each-callers-own).
		{Name: "call", Params: "iiii", Results: "i", Cost: callCost, Do: call},
		answer.Read(),
	}}
}

// call calls the tool with a name, and answers with its result.
func call(c *hostabi.Call, stack []uint64) {
	args := stack[3]
	use := hostabi.Use{Capability: "tools", Sent: int64(uint32(args))}
	begun := time.Now()
	result, err := run(c, &use, stack[0], stack[1], stack[2], args)
	use.Took, use.Received = time.Since(begun), int64(len(result))
	if err != nil {
		use.Outcome = err.Code
	}
	screened := screen(c, result)
	use.Redacted = len(screened) != len(result) || len(result) > 0 && &screened[0] != &result[0]
	result = screened
	c.Used(use)
	if err != nil {
		err.Message, err.ToolCode, err.Data = string(screen(c, []byte(err.Message))), string(screen(c, []byte(err.ToolCode))), screen(c, err.Data)
		answer.Fail(c, stack, err)
		return
	}
	answer.Give(c, stack, result)
}

// screen removes from b what must not reach the guest.
func screen(c *hostabi.Call, b []byte) []byte { return (*hostcall.Call)(c).Screened(b) }

// run does what call does, without the accounting.
func run(c *hostabi.Call, use *hostabi.Use, id, idLength, args, argsLength uint64) ([]byte, *answer.Failure) {
	if uint32(idLength) > maxID {
		return nil, answer.Failf(answer.Invalid, "The name of a tool has %d bytes; the limit is %d.", uint32(idLength), maxID)
	}
	name := strings.ToValidUTF8(string(c.View(id, idLength)), "\uFFFD")
	use.Target = name
	c.View(args, argsLength) // always, so that a pointer outside the memory ends the guest
	g, ok := c.Grant().(*permission)
	if !ok {
		return nil, answer.NotDeclared(c, "tools")
	}
	of := (*hostcall.Call)(c)
	origin, ok := of.Principal().(*Origin)
	if !ok {
		return nil, answer.NotDeclared(c, "tools")
	}
	outer := of.Outer()
	path, ok := g.named(name)
	if !ok {
		g.refuse(name, origin, outer, errNotGranted)
		return nil, answer.Failf(answer.NotGranted, "The tool may not call %q: declare it under \"tools\" in the needs, and have the operator add it to \"tools\" in the grant.", text.Short(name))
	}
	use.Target = path
	if path == Caller {
		return callerOf(origin.Principal)
	}
	if outer.Depth() >= MaxDepth {
		g.refuse(path, origin, outer, errTooDeep)
		return nil, answer.Failf(Depth, "Calls are already nested %d deep, which is the limit: %s is not called.", MaxDepth, path)
	}
	inner := invoker.Inside((*wasmtools.Call)(origin), outer)
	invocation, bounded, err := g.begin(path, inner)
	if err != nil {
		return nil, failure(path, err)
	}
	defer func() { invocation.End(err) }()
	if int64(uint32(argsLength)) > invocation.Limit() {
		err = invocation.TooLarge()
		return nil, failure(path, err)
	}
	err = errOuterEnded // what invocation.End gets unless the called tool runs
	c.Hold(int64(uint32(argsLength)))
	inner.Arguments = c.Read(args, argsLength)
	c.Charge(len(inner.Arguments) * byteCost)
	var result []byte
	enter := c.Wait
	if bounded {
		enter = of.Nest
	}
	enter(func(ctx context.Context) {
		if result, err = invocation.Run(ctx); err != nil {
			g.logCause(ctx, outer, path, err)
		}
	})
	c.Hold(-int64(uint32(argsLength)))
	if err != nil {
		if fault.Of(context.Background(), err).Code == wasmtools.CodeInvalidArguments {
			c.Charge(len(inner.Arguments) * violationCost)
		}
		return nil, failure(path, err)
	}
	return result, nil
}

// Caller is the path at which a tool can ask who calls it. It is not a tool, but it is declared, granted and called like one, so that it works in
// every language.
const Caller = "/toolsrv/caller"

// callerOf answers who calls.
func callerOf(p *wasmtools.Principal) ([]byte, *answer.Failure) {
	id, _ := personal.Of(p)
	text, err := json.Marshal(struct {
		ID     personal.ID `json:"id"`
		Name   string      `json:"name"`
		Origin string      `json:"origin"`
		Realm  string      `json:"realm"`
	}{id, p.String(), p.Origin(), p.Realm()})
	if err != nil {
		return nil, answer.Failf(answer.Unavailable, "The caller is not known.")
	}
	return text, nil
}

// These are what observers are told about calls that the calling tool may not make.
var (
	errNotGranted = &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: "The calling tool has no grant for this one."}
	errTooDeep    = &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: "The calling tool is nested too deep in other calls."}
)

// refuse tells observers of a call that is refused before its tool is looked up.
func (g *permission) refuse(path string, origin *Origin, outer hostcall.Outer, err error) {
	g.service.Invoker.Refuse(path, invoker.Inside((*wasmtools.Call)(origin), outer), err)
}

// errOuterEnded is what observers are told if the outer call has no time, fuel or memory left for a call.
var errOuterEnded = &wasmtools.Error{Code: wasmtools.CodeCancelled, Message: "The outer call has ended."}

// named returns the path of a tool. A guest names the tool by its path or its operation id. ok is false if the guest may not call it.
func (g *permission) named(name string) (path string, ok bool) {
	name = strings.TrimPrefix(name, "/")
	for _, path := range g.paths {
		if path[1:] == name {
			return path, true
		}
	}
	for _, path := range g.paths {
		if strings.ReplaceAll(path[1:], "/", "-") == name {
			return path, true
		}
	}
	return "", false
}

// A Bounded is a Caller that ends with the outer call even without a context, as the sandbox's callers do.
type Bounded interface {
	wasmtools.Caller
	// IsBounded does nothing.
	IsBounded()
}

// begin finds the tool and admits the call. bounded means that the tool's Caller is a Bounded.
func (g *permission) begin(path string, call *wasmtools.Call) (i *invoker.Invocation, bounded bool, err error) {
	route, err := g.find(path, call)
	if err != nil {
		g.service.Invoker.Refuse(path, call, err)
		return nil, false, err
	}
	_, bounded = route.Tool.Caller.(Bounded)
	i, err = g.service.Invoker.Begin(route, call)
	return i, bounded, err
}

// find returns the tool for a nested call. A nested call uses the configuration that was in force when the outer call began: it gets nothing that was
// granted or enabled since then. It also loses what was taken away since then: the caller must still be admitted, and must still be allowed to call
// the tool. It never runs a version that has been replaced, since a new pin may forbid it. The new version is called if only switches have changed,
// because then its grants come from the old configuration.
func (g *permission) find(path string, call *wasmtools.Call) (route wasmtools.Route, err error) {
	now, principal := g.service.Table().Current(), call.Principal
	if call.Client != nil {
		if now, principal, err = call.Client.Now(); err != nil {
			return route, &wasmtools.Error{Code: fault.Of(context.Background(), err).Code, Message: "The caller's credentials are no longer accepted.", Err: err}
		}
	}
	if !principal.Is(call.Principal) {
		return route, errNoLonger
	}
	if route, err = invoke.Find(now, path, principal); err != nil {
		return route, err
	}
	if call.Generation == nil || now.SameConfiguration(call.Generation) {
		return route, nil
	}
	if err := invoker.Admits(route, principal); err != nil {
		return route, err
	}
	before, err := invoke.Find(call.Generation, path, call.Principal)
	switch {
	case err != nil || before.Tool.Digest == route.Tool.Digest:
		return before, err
	case !sameValue(now.Configuration(), call.Generation.Configuration()):
		return route, &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Tool " + path + " was replaced, and the configuration has changed, since the call began: try again with a new call."}
	}
	return route, invoker.Admits(before, call.Principal)
}

// sameValue reports whether two configurations are the same value. A program's value may have a type that can't be compared.
func sameValue(a, b any) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// errNoLonger refuses a call after its caller has become somebody else.
var errNoLonger = &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "The caller's identity has changed since the call began."}

// maxCause is how many bytes of a cause are logged.
const maxCause = 4 << 10

// logCause logs why a call failed, if neither the guest nor its client may know. The line counts towards the outer
// call's limit of log lines.
func (g *permission) logCause(ctx context.Context, outer hostcall.Outer, path string, err error) {
	e := fault.Of(ctx, err)
	if e.Err == nil || g.service.Logger == nil || !outer.Line() {
		return
	}
	g.service.Logger.LogAttrs(ctx, fault.Level(e), "a call inside another failed", slog.String("tool", path), slog.String("code", string(e.Code)),
		slog.String("error", text.Clip(fmt.Sprint(e.Err), maxCause)))
}

// failure returns the failure for a guest whose call failed. It says what a client would be told.
func failure(path string, err error) *answer.Failure {
	e := fault.Of(context.Background(), err)
	f := &answer.Failure{Code: string(e.Code), Message: text.Clip(e.Message, maxData)}
	switch e.Code {
	case wasmtools.CodeNotFound:
		f.Message = fmt.Sprintf("There is no tool %s, or the caller may not call it.", path)
	case wasmtools.CodeInvalidArguments:
		if f.Message = "The arguments do not fit the schema of " + path; len(e.Violations) > 0 {
			f.Message += ": " + e.Violations[0].String()
			f.Data, _ = json.Marshal(e.Violations) // invalid JSON is left out
		}
		f.Message += "."
	case wasmtools.CodeToolError:
		f.ToolCode = text.Clip(e.ToolCode, maxData)
		if len(e.Data) <= maxData && json.Valid(e.Data) {
			f.Data = e.Data
		}
	case wasmtools.CodeInternal:
		f.Message = ""
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("%s failed as %s.", path, e.Code)
	}
	return f
}
