package core

import (
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// HeapLimit returns how large Go's heap should get at most, in bytes: nine tenths of the memory that the process has, less
// what tools and their code may take, but at least a quarter of all. Memory for compiling counts as both.
func HeapLimit(c *config.Config) int64 {
	machine, tools, code := account.MachineMemory(), c.Server.Memory, c.Server.CodeMemory
	if tools == 0 {
		tools = account.DefaultMemory()
	}
	if code == 0 {
		code = account.DefaultCode()
	}
	return max(machine/4, machine/10*9-tools-code)
}

// BodyMemory returns how many bytes of large arguments and results all calls may hold, of the memory that the process has. Checks may take
// a quarter as much, and what they need beyond that comes from the memory of the tools.
func BodyMemory(machine int64) int64 { return min(256<<20, machine/8) }
