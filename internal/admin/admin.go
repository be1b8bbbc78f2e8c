// Package admin has what an operator can ask of a running server: one table of operations. The door at /admin/v1, the socket in the
// directory of the state and the command line use it, so all three give the same answers.
//
// An operation is a value that [Looks] or [Changes] makes. To add one, write it into a file beside tools.go, and its line into
// [Operations].
package admin

import (
	"cmp"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/slow"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Target is the running server that operations are about.
type Target struct {
	// Service is what the server serves.
	Service *core.Service
	// Server has what is known above the service.
	Server Server
	// Build is the program that answers.
	Build Build

	uploads uploads
	waiting waiting // who wait for lines of the log, or events
}

// A Build is a program, as far as it is known.
type Build struct{ Version, Revision string }

// ThisBuild returns this program.
func ThisBuild() Build {
	b := Build{"unknown", "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, b.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

// A Server is what operations need of package server, which lies above this package.
type Server interface {
	// Ready returns why the server is not ready, or nil.
	Ready() error
	// Addresses are those that it listens on.
	Addresses() []string
	// Connections tells how many clients are connected, Streams how many streams they have open, and Sessions how many MCP sessions: nil where the
	// server doesn't speak it.
	Connections() Use
	Streams() Use
	Sessions() *Use
	// Slow are the slowest calls of the last hour, the slowest first.
	Slow() []slow.Call
	// Prepare reads the configuration again, and makes what will be in force, unless it is only a check. An *wasmtools.Error says what is
	// wrong with it.
	Prepare(looks bool) (Prepared, error)
	// Principals are the callers that are known by name, sorted by it.
	Principals() []*wasmtools.Principal
}

// Operations returns all operations, in the order in which people are shown them. The slice is shared, and must not be changed.
func Operations() []Operation { return operations() }

// operations are made once: to compile their schemas takes some milliseconds.
var operations = sync.OnceValue(func() []Operation {
	return append([]Operation{
		status(),
		tools(),
		switchesNow(),
		enable(),
		disable(),
		reset(),
		reload(),
		goroutines(),
		put(),
		remove(),
		history(),
		rollback(),
		slowest(),
		top(),
		refused(),
		logs(),
		eventsOf(),
		auditOf(),
		auditVerify(),
		stateBackup(),
		reaches(),
		explain(),
	}, slices.Concat(tokenOperations(), secretOperations(), kvOperations())...)
})

// Find returns the operation of a name. It panics if there is none: names are our own.
func Find(name string) *Operation {
	all := Operations()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	panic("admin.Find: no operation " + name)
}
