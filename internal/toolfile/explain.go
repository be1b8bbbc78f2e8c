package toolfile

import "strings"

// advice says what to do about errors that many authors meet. A mark is looked for in the error, in a trace if the module names its functions, and in
// the guest's output.
var advice = [...]struct{ mark, says string }{
	{"reflectlite.RawType).AssignableTo", `the tool panics with "reflect: unimplemented: AssignableTo with interface": TinyGo up to 0.40.1 breaks encoding/json in a program ` +
		`that uses errors.As; use toolsrv.AsType instead, leave out the library that calls it, or build the tool with Go`},
	{"AssignableTo with interface", `TinyGo up to 0.40.1 breaks encoding/json in a program that uses errors.As; use toolsrv.AsType instead, ` +
		`leave out the library that calls it, or build the tool with Go`},
	{"dial tcp", "a tool has no network of its own: send requests with the SDK's package for HTTP (sdk/go/http, toolsrv::http), and declare where they go in the manifest's needs"},
	{"Netdev not set", "a tool has no network of its own: send requests with the package sdk/go/http, and declare where they go in the manifest's needs"},
	{"time not implemented on this platform", "std::time has no clock on wasm32-unknown-unknown: use toolsrv::now"},
	{"sys/thread/unsupported.rs", "there are no threads in the sandbox, and nothing to wait for: do the work in one thread"},
	{"std/src/thread/", "there are no threads in the sandbox: do the work in one thread"},
	{"operation not supported on this platform", "a tool has no files, sockets or threads of its own: use toolsrv::http for requests, take contents as arguments, or grant files"},
	{"without a scheduler", goroutines}, // these come from TinyGo's compiler and its runtime
	{"function did not finish", "a goroutine that the call waits for never ends: make it end, or do its work in the call"},
	{"(*fmt.ss).", "fmt.Sscan and the like panic on wrong input, and TinyGo can't recover from panics: use strconv, or build the tool with Go"},
	{"errno 76", "a tool has no files except in granted directories: declare them in the manifest's needs (files), or take contents as an argument"},
	{"panic: unimplemented: ", "TinyGo lacks this part of Go's library: do without it, or build the tool with Go"},
	{"panic: reflect: unimplemented: ", "TinyGo lacks this part of package reflect: do without it and what needs it (text/template, for one), or build the tool with Go"},
}

const goroutines = "with TinyGo a tool has no goroutines, no timers and nothing that needs them (go, time.After, context.WithTimeout, net/http): do without them, or remove the line //toolsrv:tinygo to build the tool with Go"

// Advice returns what to do about a guest's error, or "". It looks at the error's text, or at a line that the guest has printed.
func Advice(text string) string {
	for _, a := range advice {
		if strings.Contains(text, a.mark) {
			return a.says
		}
	}
	return ""
}

// explain returns what to do about an error of toolsrv_describe, followed by a colon, or "". The output of a panic may be lost.
func explain(err error) string {
	if says := Advice(err.Error()); says != "" {
		return says + ": "
	}
	return ""
}
