// Package service has what is below all doors: the files, what runs them, the table of their tools, and the way to call them. A program
// opens it once, has a server, an MCP client on standard input or calls of its own use it, and closes it after them.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/catalog"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/directory"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/script"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// Options say what a Service has beside its configuration. The zero value is usable.
type Options struct {
	// Tools are those of the program itself. They are served beside those of the files, from the start.
	Tools []*wasmtools.Tool
	// Files are paths of .wasm files and scripts that are served instead of the configured directory.
	Files []string
	// Logger is the log. Nil discards. No line has a secret of the configuration. Package net/http has lines of its own for the standard
	// logger of package log, which may quote what a server sent to a tool: a program that grants secrets should give that one another output.
	Logger *slog.Logger
}

// A Service is a struct of handles, each of which is safe for concurrent use. The fields are not to be changed.
type Service struct {
	Engine  *sandbox.Engine       // runs guests
	Catalog *catalog.Catalog      // follows the files
	Table   *wasmtools.RouteTable // of the files' tools, with what is in force
	Invoker *invoke.Invoker       // calls tools; of all doors, so that they share its memory
	Broker  *capability.Broker    // what grants need
	// Connections are those of tools. A server counts those of its clients there, too.
	Connections *Connections
	// Logger keeps secrets out of the log that Options name.
	Logger *slog.Logger
	// Began is when Open was called.
	Began time.Time

	secrets    *secret.Store // of all grants
	source     source
	scripts    *script.Memory // nil: none
	complaints []complaint    // what WarnUnmatched has logged last

	once   sync.Once
	closed error
}

// A source is where the files come from.
type source interface {
	catalog.Source
	io.Closer
}

// Open opens everything, and begins to read the tools directory. It does not wait for the files: see [catalog.Catalog.Wait]. A missing
// directory is an error; a refused file is not. ctx is for the start only. c must not change any more. The caller closes the Service, after
// all that uses it.
func Open(ctx context.Context, c *config.Config, o Options) (*Service, error) {
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		return nil, err
	}
	s := &Service{Table: table, Began: time.Now(), Connections: NewConnections(account.MachineDescriptors())}
	s.secrets = secret.NewStore(func() *secret.Values {
		if c := s.InForce(); c != nil {
			return c.Granted.Secrets()
		}
		return nil
	})
	s.Logger = slog.New(s.secrets.Handler(logger.Handler()))
	s.Invoker = invoke.New(invoke.Options{
		Memory: BodyMemory(account.MachineMemory()),
		Hurry:  s.hurry,
		Room:   s.room,
	})
	if err := s.open(ctx, c, &o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens the parts, first those that fail most cheaply. After an error, Close closes what was opened.
func (s *Service) open(ctx context.Context, c *config.Config, o *Options) (err error) {
	record := ""
	if len(o.Files) > 0 {
		err = s.openFiles(o.Files)
	} else {
		record = RecordFile(c)
		err = s.openDirectory(c)
	}
	if err != nil {
		return err
	}
	s.Engine, err = sandbox.New(ctx, sandbox.Config{
		Imports:       toolfile.Imports(),
		CacheDir:      s.cacheDir(c),
		Memory:        c.Server.Memory,
		CodeMemory:    c.Server.CodeMemory,
		CompileHelper: c.Tools.CompileHelper,
		Logger:        slog.New(requestIDs{s.Logger.Handler()}),
	})
	if err != nil {
		return fmt.Errorf("start the sandbox engine: %w", err)
	}
	s.Broker, err = capability.Open(c, capability.Options{
		Table:       func() *wasmtools.RouteTable { return s.Table },
		Invoker:     s.Invoker,
		Secrets:     s.secrets,
		Connections: s.Connections,
		Logger:      s.Logger,
	})
	if err != nil {
		return fmt.Errorf("prepare what tools may reach: %w", err)
	}
	first, err := s.Configure(c)
	if err != nil {
		return err
	}
	in := forCatalog(first)
	s.Catalog, err = catalog.Start(ctx, catalog.Options{
		Source: s.source,
		Engine: s.Engine,
		Table:  s.Table,
		Limits: in.Limits,
		Grants: in.Grants,
		Policy: in.Policy,
		Value:  in.Value,
		Record: record,
		Tools:  o.Tools,
		Logger: s.Logger,
	})
	if err != nil {
		return fmt.Errorf("start the catalog: %w", err)
	}
	return nil
}

// openFiles has the files of these paths served.
func (s *Service) openFiles(paths []string) error {
	files, err := directory.OpenFiles(paths, directory.Options{Logger: s.Logger, Scripts: script.Builder{}})
	if err == nil {
		s.source = files
	}
	return err
}

// openDirectory has the files of the configured directory served.
func (s *Service) openDirectory(c *config.Config) error {
	if err := CheckDirectory(c); err != nil {
		return err
	}
	if dir, err := CacheDir(c); err == nil && c.Tools.Scripts && len(c.Tools.ScriptHelper) > 0 {
		// What is wrong with the directory the engine tells, which keeps compiled code there.
		s.scripts, _ = script.OpenMemory(dir, c.Tools.ScriptHelper)
	}
	claim := func(bytes int64) func() { return s.Engine.Claim(min(bytes, s.Engine.Memory()/2)) } // the rest is left to calls
	files, err := openDirectory(c, s.Logger, s.scripts, claim)
	if err != nil {
		return fmt.Errorf("open the tools directory: %w", err)
	}
	s.source = files
	return nil
}

// room takes memory for checks of arguments from what tools may take.
func (s *Service) room(ctx context.Context, bytes int64) (give func(), err error) {
	if give, err = s.Engine.Room(ctx, bytes); errors.Is(err, sandbox.ErrTooMuch) {
		return nil, invoke.ErrTooMuch
	}
	return give, err
}

// LogReady waits until all tools are listed, and logs that they are. It reports false if that was not so before ctx ended.
func (s *Service) LogReady(ctx context.Context) bool {
	if err := s.Catalog.Wait(ctx); err != nil {
		return false
	}
	generation := s.Table.Current()
	s.Logger.Info("ready", "tools", len(generation.Routes()), "refused", len(generation.Refused()),
		"took", time.Since(s.Began).Round(time.Millisecond).String())
	return true
}

// Close closes everything, and waits for calls that run. It is to be called when all that uses the Service is closed. A second Close returns
// the result of the first.
func (s *Service) Close() error {
	s.once.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Service) close() error {
	var errs []error
	if s.Catalog != nil {
		errs = append(errs, s.Catalog.Close())
	}
	if s.source != nil {
		errs = append(errs, s.source.Close())
	}
	if s.scripts != nil {
		_ = s.scripts.Close() // it leaves a folder behind at worst
	}
	if s.Engine != nil {
		errs = append(errs, s.Engine.Close(context.Background()))
	}
	if s.Broker != nil {
		errs = append(errs, s.Broker.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the service: %w", err)
	}
	return nil
}
