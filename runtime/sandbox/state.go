package sandbox

import (
	"maps"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/runtime/schedule"
)

// A State is what an engine holds. Its parts are read one after the other while calls go on, so they may be of slightly
// different moments.
type State struct {
	// Modules is how many modules are loaded. Those that differ only in custom sections count as one.
	Modules int
	// Code is how many modules are in each state of their code.
	Code map[CodeState]int
	// Snapshots is how many modules have been initialised, and Idle how many instances wait for a call.
	Snapshots, Idle int
	// Calls is how many calls run or wait, those included that wait for a compilation.
	Calls int
	// Memory, Mappings and CodeMemory are what all modules together take of what the Config bounds: bytes, mappings of
	// the address space, and bytes of compiled code.
	Memory, Mappings, CodeMemory account.Use
	// Manifests is how many bytes [Program.Keep] has counted of all. They are part of Memory.
	Manifests account.Use
	// Sources is how many bytes the modules themselves take, which are kept as they were written, compressed or not. They are part
	// of Memory.
	Sources account.Use
	// Compiling is what is compiled, or loaded from the cache, and what waits for that.
	Compiling schedule.State
}

// A CodeState is what there is of a module's compiled code.
type CodeState string

// The states of a module's code.
const (
	CodeMissing = CodeState(foundry.Missing) // nothing: the next call compiles it
	CodeStored  = CodeState(foundry.Stored)  // on disk: the next call loads it
	CodePending = CodeState(foundry.Pending) // under way, or queued
	CodeLoaded  = CodeState(foundry.Loaded)  // in memory
	CodeRefused = CodeState(foundry.Refused) // it can't be compiled, and every call fails
)

// ManifestUse returns Manifests of State alone, in no time.
func (e *Engine) ManifestUse() account.Use { return e.account.Use(account.Manifests) }

// SourceUse returns Sources of State alone, in no time.
func (e *Engine) SourceUse() account.Use { return e.account.Use(account.Sources) }

// State tells what the engine holds. It takes about a millisecond for 10,000 modules.
func (e *Engine) State() State {
	s := State{
		Code:       map[CodeState]int{},
		Memory:     e.account.Use(account.Memory),
		Mappings:   e.account.Use(account.Mappings),
		CodeMemory: e.account.Use(account.Code),
		Manifests:  e.account.Use(account.Manifests),
		Sources:    e.account.Use(account.Sources),
		Compiling:  e.schedule.State(),
	}
	e.mu.Lock()
	modules := slices.Collect(maps.Values(e.modules))
	for m := range e.live {
		if e.modules[m.sum] != m { // a call of a Tool whose Program is closed brought it back
			modules = append(modules, m)
		}
	}
	e.mu.Unlock()
	s.Modules = len(modules)
	for _, m := range modules {
		p := m.state()
		s.Code[p.Code]++
		s.Idle += p.Idle
		s.Calls += p.Calls
		if p.Snapshot {
			s.Snapshots++
		}
	}
	return s
}

// A ProgramState is what an engine holds of one program.
type ProgramState struct {
	Code CodeState
	// CodeMemory is what the code takes in memory, in bytes. Modules of one engine share it.
	CodeMemory int64
	// Snapshot reports whether the program has been initialised.
	Snapshot bool
	// Idle is how many instances wait for a call.
	Idle int
	// Calls is how many calls run or wait.
	Calls int
	// Called is when the last call began, or the program was loaded.
	Called time.Time
}

// State tells what the engine holds of the program, and of those that differ from it only in custom sections.
func (p *Program) State() ProgramState { return p.module.state() }

func (m *module) state() ProgramState {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := ProgramState{Snapshot: m.snapshot != nil, Idle: len(m.idle), Calls: m.calls, Called: m.called}
	code, bytes := m.code.State()
	s.Code, s.CodeMemory = CodeState(code), bytes
	return s
}

// A ToolState is how many calls of a tool hold one of its places (limits.Limits.Concurrency), and how many wait for one
// (limits.Limits.Queue).
type ToolState struct{ Running, Waiting int }

// State tells how many calls of the tool there are.
func (t *Tool) State() ToolState {
	free, waiting := t.gate.state()
	return ToolState{Running: t.limits.Concurrency - free, Waiting: waiting}
}
