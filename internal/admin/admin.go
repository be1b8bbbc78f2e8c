// Package admin has the operations that an operator can run on a running server, in one table. The door at /admin/v1, the socket in the directory of
// the state and the command line use it, so all three give the same answers.
//
// An operation is a value that [Looks] or [Changes] makes. To add one, write it in a file beside tools.go, and add its line to [Operations].
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

// A Target is the running server on which operations run.
type Target struct {
	// Service is the service behind the server.
	Service *core.Service
	// Server has what only package server knows.
	Server Server
	// Build is the program that answers.
	Build Build

	uploads uploads
	waiting waiting // callers that wait for lines of the log, or events
}

// A Build is the version of a program, as far as it is known.
type Build struct{ Version, Revision string }

// ThisBuild returns the Build of this program.
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

// A Server is what operations need from package server, which imports this package.
type Server interface {
	// Ready returns why the server is not ready, or nil.
	Ready() error
	// Addresses returns the addresses on which the server listens.
	Addresses() []string
	// Connections returns how many clients are connected, Streams how many streams they have open, and Sessions how many MCP sessions, or nil if the
	// server doesn't speak MCP.
	Connections() Use
	Streams() Use
	Sessions() *Use
	// Slow returns the slowest calls of the last hour, the slowest first.
	Slow() []slow.Call
	// Prepare reads the configuration again and, unless this is only a check, builds everything that Apply puts in force. An *wasmtools.Error
	// says what is wrong with the configuration.
	Prepare(looks bool) (Prepared, error)
	// Principals returns the callers that are known by name, sorted by name.
	Principals() []*wasmtools.Principal
}

// Operations returns all operations, in the order of lists and help. The slice is shared and must not be changed.
func Operations() []Operation { return operations() }

// operations are made once, since compiling their schemas takes some milliseconds.
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

// Find returns the operation with a name. It panics if there is none, since all names are constants.
func Find(name string) *Operation {
	all := Operations()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	panic("admin.Find: no operation " + name)
}
