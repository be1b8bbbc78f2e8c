// Package hostabi is what a host function is given, and how functions are offered to guests.
//
// A [Set] is the functions of one import module. An engine is given all sets that it is to know; a program may import from
// those that it was given when it was loaded, and no others. A set keeps nothing for a guest between two calls: what a
// function may know of the call is in its [Call], what one tool is allowed comes as the tool's grant, and what has to live
// as long as the call is kept in the call.
//
// A guest may pass anything. Each place in its memory is checked before it is used, by the methods of Call, which end the
// call where a place is outside. Other arguments are the function's own to check, and so is the size of whatever it
// allocates.
package hostabi

// A Set is the functions of one import module. It must not change once an engine has it, and is then safe for concurrent
// use: its functions are called by many guests at a time.
type Set struct {
	// Module is the name of the import module.
	Module string
	// Functions are what a guest may import from it.
	Functions []Function
	// Target tells authors how to build a module that imports from here, such as "in Go: GOOS=wasip1". It may be empty.
	Target string
}

// A Function is a function that the host offers to guests.
type Function struct {
	Name string
	// Params and Results hold one letter for each parameter and result: i for i32, I for i64.
	Params, Results string
	// Cost is what each call of the function is charged, in nanoseconds; 0 is [CallCost]. Copying to and from the guest's
	// memory is charged beside it; whatever else takes time the function charges with [Call.Charge].
	Cost int
	// Do reads the parameters from the stack, and writes the result over the first. The host copies what it keeps: no part of
	// the guest's memory is valid after Do has returned.
	Do func(c *Call, stack []uint64)
}

// What the work of a host function is taken for, in nanoseconds. Fuel counts them like instructions that take as long.
const (
	// CallCost is the cost of a function that names none.
	CallCost = 100
	// LineCost is the cost of a log line that is written.
	LineCost = 2000
	// bytesPerNano is how many bytes are copied in one.
	bytesPerNano = 8
)
