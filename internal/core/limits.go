package core

import (
	"cmp"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
)

// Memory is how the memory of the process is divided, in bytes.
type Memory struct {
	// Machine is all that the process has.
	Machine int64
	// Tools and Code are what tools and their code may take.
	Tools, Code int64
	// Heap is the limit for Go's heap: nine tenths of all, less Tools and Code, but at least a quarter of all. Memory for compiling counts towards
	// both Tools and Heap.
	Heap int64
	// Bodies is what large arguments and results of all calls may take. Validation may take a quarter as much, and takes anything beyond that from
	// Tools.
	Bodies int64
}

// MemoryOf returns how a server with a configuration divides its memory.
func MemoryOf(c *config.Config) Memory { return memoryOf(account.MachineMemory(), c) }

func memoryOf(machine int64, c *config.Config) Memory {
	m := Memory{
		Machine: machine,
		Tools:   cmp.Or(c.Server.Memory, account.DefaultMemory(machine)),
		Code:    cmp.Or(c.Server.CodeMemory, account.DefaultCode(machine)),
		Bodies:  min(256<<20, machine/8),
	}
	m.Heap = max(machine/4, machine/10*9-m.Tools-m.Code)
	return m
}
