// Package hostcall defines a run of a guest as host functions and the sandbox see it, and how functions are offered to guests. Package hostabi is the
// part of it that capabilities' functions need.
//
// A [Set] is the functions of one import module. An engine is given all the sets that it may know. When a program is loaded, it is given the import
// modules that it may use; it can't be loaded if it imports anything else. A set keeps nothing for a guest between calls. Its functions receive a
// [Call], which has what they may know about the call, the tool's grant, and what the set keeps until the call ends.
//
// A guest may pass anything. The methods of Call check each address in the guest's memory, and end the call if one is outside. A function must check
// its other arguments itself, and the size of whatever it allocates.
package hostcall

// A Set is the functions of one import module. It must not change once an engine has it. Its functions are called by many guests
// at a time.
type Set struct {
	// Module is the name of the import module.
	Module string
	// Functions are all that can be imported from the module.
	Functions []Function
	// Target says how to build a guest that imports from the module, such as "in Go: GOOS=wasip1". It may be empty.
	Target string
	// Nests says that a tool which was granted something of the set may call other tools. A call of such a tool that is made inside another
	// call never waits for one of the tool's places, since the calls that hold them may be waiting for the outer call to end.
	Nests bool
}

// A Function is a function that the host offers to guests.
type Function struct {
	Name string
	// Params and Results hold one letter for each parameter and result: i for i32, I for i64, F for f64.
	Params, Results string
	// Cost is what each call of the function is charged, in nanoseconds; 0 means [CallCost]. The methods of [Call] charge what they copy.
	// The function itself must charge for anything else that takes time, with [Call.Charge].
	Cost int
	// Do reads the parameters from the stack, and writes the result over the first. An i32 is the lower half of its element. The upper half of a
	// parameter is 0, and the upper half of a result does not matter. The guest's memory must not be used after Do has returned.
	Do func(c *Call, stack []uint64)
}

// The estimated times of the host's work, in nanoseconds. Fuel counts it like instructions that take as long.
const (
	// CallCost is the cost of a function without a cost of its own.
	CallCost = 100
	// LineCost is the cost of a log line that is written.
	LineCost = 2000
	// SearchCost is the cost of a byte that is searched for secrets.
	SearchCost = 10
	// bytesPerNano is how many bytes can be copied in a nanosecond.
	bytesPerNano = 8
)
