// Package service is everything below the doors: the files, what runs them, the table of their tools, and the way to call them. A program
// opens it once, uses it for a server, an MCP client on standard input or its own calls, and closes it after them.
package service

import (
	"context"
	"log/slog"

	inner "github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// Options say what a Service has in addition to its configuration. The zero value is usable.
type Options struct {
	// Tools are the program's own. They are served beside the files' tools, from the start.
	Tools []*wasmtools.Tool
	// Files are paths of .wasm files and scripts that are served instead of the configured directories.
	Files []string
	// Observers are told of each call, whatever door it comes through, and of each call that a tool makes.
	Observers []invoke.Observer
	// Volatile keeps state in memory if the configuration names no directory for it. Otherwise nothing can be kept in that case.
	Volatile bool
	// Logger is the log. If it is nil, log lines are discarded. No line contains a secret of the configuration. Package net/http writes to the
	// standard logger of package log, and may quote there what a server sent to a tool: a program that grants secrets should redirect that logger.
	Logger *slog.Logger
}

// A Service is open until Close. It is safe for concurrent use.
type Service core.Handle

// Open opens everything, and begins to read the tools directories. It does not wait for the files: see [Service.Wait]. It is an error if no
// directory exists; a refused file is not. ctx is only for the start. The caller closes the Service, after all that uses it.
func Open(ctx context.Context, c *config.Config, o Options) (*Service, error) {
	s, err := core.Open(ctx, (*inner.Handle)(c).Config(), core.Options(o))
	if err != nil {
		return nil, err
	}
	return (*Service)(s.Handle()), nil
}

func (s *Service) core() *core.Service { return (*core.Handle)(s).Service() }

// Table returns the table of the tools that are served.
func (s *Service) Table() *wasmtools.RouteTable { return s.core().Table }

// Invoker returns the service's invoker, which calls tools. All doors use it, and share its memory.
func (s *Service) Invoker() invoke.Invoker { return s.core().Invoker }

// Wait waits until all files that existed at the start have been read.
func (s *Service) Wait(ctx context.Context) error { return s.core().Catalog.Wait(ctx) }

// Reload puts a whole configuration in force. After an error the old one stays. If there is a server, use the server's Reload: the
// Service's own then fails.
func (s *Service) Reload(c *config.Config) error { return s.core().Reload((*inner.Handle)(c).Config()) }

// Pack returns a module with a manifest inside, in place of any that it has. It is for programs with functions of their own, which the
// module may import. It fails if the service could not serve the file.
func (s *Service) Pack(ctx context.Context, module, manifest []byte) ([]byte, error) {
	return s.core().Pack(ctx, module, manifest)
}

// Close closes everything, and waits for running calls. Call it when everything that uses the Service is closed. A second Close returns the
// result of the first.
func (s *Service) Close() error { return s.core().Close() }
