// Package limits defines what can be limited in the calls of a tool. Each field of [Limits] is an entry of one table, from which the
// configuration takes its keys, ranges and messages, the documentation its rows, and the sandbox its defaults.
package limits

import "time"

// Limits bound the calls of one tool. A zero field is not set: the limit stays as it was, or is the default. A
// negative one means what 0 means in the configuration (see docs/configuration.md), or is not set where 0 is not allowed there.
//
// The tag of a field is the limit's entry. To add a limit, add a field and enforce it.
type Limits struct {
	Timeout time.Duration `key:"timeout" unit:"time" default:"5s" least:"1ms" most:"1h" means:"longest time of a call, waiting for its turn included"`
	// Fuel also bounds what a start computes, for which it is at least 1e9. It is charged in advance, for whole loop bodies, and work of
	// the host counts like instructions that take as long.
	Fuel   int64 `key:"fuel" default:"0" least:"0" most:"9223372036854775807" zero:"unlimited" means:"most that a call may compute, in units of roughly one WebAssembly instruction"`
	Memory int64 `key:"memory" unit:"bytes" default:"64MiB" least:"64KiB" most:"4GiB" means:"largest memory of a tool; whole pages of 64 KiB count"`
	// Stack bounds the stack of the sandbox. Guests of some compilers have a second one in their memory.
	Stack       int64 `key:"stack" unit:"bytes" default:"32MiB" least:"16KiB" most:"64MiB" means:"largest call stack of a tool"`
	Input       int64 `key:"input" unit:"bytes" default:"1MiB" least:"1B" most:"1GiB" means:"largest body of a call"`
	Output      int64 `key:"output" unit:"bytes" default:"4MiB" least:"1B" most:"1GiB" means:"largest result of a call"`
	LogLines    int   `key:"log_lines" default:"100" least:"0" most:"10000" zero:"none" means:"lines that a call may log; the rest is dropped"`
	Concurrency int   `key:"concurrency" default:"0" least:"0" most:"10000" each:"4" zero:"4 for each processor, and at least 64 for a tool that needs http or tools" means:"calls of one tool that run at the same time"`
	Queue       int   `key:"queue" default:"64" least:"0" most:"100000" zero:"none" means:"calls of one tool that wait for their turn; further ones get 503"`
}
