// Package core has what is below all doors: the files, the engine that runs them, the table of their tools, and the way to call these. A process
// opens it once. A server, an MCP client on standard input or the process's own calls use it, and it is closed after them.
package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/brought"
	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/events"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/metrics"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/recent"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/signing"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/trouble"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// Options say what a Service has in addition to its configuration. The zero value is usable.
type Options struct {
	// Tools are the program's own tools. They are served beside those of files, from the start.
	Tools []*wasmtools.Tool
	// Files are paths of .wasm files and scripts to serve instead of the configured directories.
	Files []string
	// Observers are told of each call, whichever door it comes through, and of the calls that it makes.
	Observers []invoke.Observer
	// Volatile keeps state in memory if the configuration names no directory for it. If it is false, nothing can be kept in that case.
	Volatile bool
	// Logger is the log. Nil discards. No line has a secret of the configuration. Package net/http writes to the standard logger of package
	// log, and may quote there what a server sent to a tool: a program that grants secrets should redirect that logger.
	Logger *slog.Logger
}

// A Service is a struct of handles, each of which is safe for concurrent use. The fields are not to be changed.
type Service struct {
	Engine  *sandbox.Engine       // runs guests
	Catalog *catalog.Catalog      // follows the files
	Table   *wasmtools.RouteTable // the tools, and the configuration in force
	Invoker *invoker.Invoker      // calls tools; all doors use it, so that they share its memory
	State   *State                // shared by everything that keeps something
	Tokens  *tokens.Store         // tokens of callers, in the state
	Rates   *rates.Limiter        // limits the rates of callers
	Broker  *broker.Broker        // what grants need
	Audit   *audit.Log            // who changed what
	Brought *brought.Store        // the secrets that callers have set themselves
	// Switches are what operators have switched on and off.
	Switches *switches.Switches
	// Versions are the kept versions of files.
	Versions *versions.Store
	// Keys sign what the processes that share a state give to clients.
	Keys *signing.Keys
	// Connections counts the connections of tools. A server also counts its clients there.
	Connections *Connections
	// Recent has the last lines of the log.
	Recent *recent.Log
	// Events has what has happened to the tools.
	Events *events.Log
	// Logger writes to the log in Options, and keeps secrets out of it.
	Logger *slog.Logger
	// Metrics count calls.
	Metrics *metrics.Metrics
	// Tracer records requests and calls for a collector. It is nil if there is none.
	Tracer Tracer
	// Began is when Open was called.
	Began time.Time

	secrets    *secret.Store     // the secrets of all grants
	headers    map[string]string // the headers for the collector, as configured at the start
	sources    *Sources
	scripts    *script.Memory // nil: none
	complaints []complaint    // what WarnUnmatched has logged last

	keeping    sync.WaitGroup // waits for the goroutine that keeps versions of files
	stopKeeper context.CancelFunc

	once   sync.Once
	closed error
}

// Open opens everything, and starts to read the tools directories. It does not wait for the files: see [catalog.Catalog.Wait]. It is an error if no
// directory exists, but not if a file is refused. ctx is only for the start. c must not change from now on. The caller closes the Service, after
// everything that uses it.
func Open(ctx context.Context, c *config.Config, o Options) (*Service, error) {
	s, err := assemble(c, &o)
	if err != nil {
		return nil, err
	}
	if err = s.openSources(c, o.Files); err == nil { // the step that costs least comes first, since it may fail
		err = s.openEngine(ctx, c, 0)
	}
	if err == nil {
		err = s.start(ctx, c, o.Tools)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenBare opens a Service that follows no files: its Catalog is nil. It is for a command that puts a file into the Table itself, and gets its grants
// from Configure. compilers is how many processors compile one module: see [sandbox.Config].
func OpenBare(ctx context.Context, c *config.Config, compilers int, logger *slog.Logger) (*Service, error) {
	s, err := assemble(c, &Options{Volatile: true, Logger: logger})
	if err != nil {
		return nil, err
	}
	if err := s.openEngine(ctx, c, compilers); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// assemble returns a Service with everything that needs neither files nor an engine. The first Configure opens its state.
func assemble(c *config.Config, o *Options) (*Service, error) {
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
	s.Recent = recent.New()
	s.Logger = slog.New(s.secrets.Handler(s.Recent.Handler(logger.Handler())))
	s.State = &State{volatile: o.Volatile, logger: s.Logger}
	s.Events = events.NewLog(table, s.clean)
	s.Audit = newAudit(s)
	s.Rates = rates.New()
	s.Metrics = metrics.New(metrics.Options{Table: table, Tools: c.Metrics.Tools, Prometheus: Counts(c), Principals: c.Metrics.Principals})
	observers := append([]invoke.Observer{s.Metrics}, o.Observers...)
	if c.OTLP.Endpoint != "" {
		if s.Tracer, err = newTracer(s, c); err != nil {
			return nil, err
		}
		s.headers = c.OTLP.Headers
		observers = append(observers, s.Tracer)
	}
	s.Invoker = invoker.New(invoker.Options{
		Memory: MemoryOf(c).Bodies,
		Hurry:  s.hurry,
		Room:   s.room,
		Rates:  s.Rates,

		Observers: observers,
	})
	s.Broker = broker.New(c, broker.Options{
		Table:       func() *wasmtools.RouteTable { return s.Table },
		Invoker:     s.Invoker,
		Secrets:     s.secrets,
		Connections: s.Connections,
		Logger:      s.Logger,
	})
	return s, nil
}

// Handle returns the handle of the service.
func (s *Service) Handle() *Handle { return &Handle{s} }

// clean removes secrets from a text that is kept.
func (s *Service) clean(text string) string { return s.secrets.Everything().String(text) }

// openEngine opens the engine that runs guests.
func (s *Service) openEngine(ctx context.Context, c *config.Config, compilers int) (err error) {
	s.Engine, err = sandbox.New(ctx, sandbox.Config{
		Imports:        toolfile.Imports(c.Capabilities...),
		CacheDir:       s.cacheDir(c),
		Memory:         c.Server.Memory,
		CodeMemory:     c.Server.CodeMemory,
		CompileHelper:  c.Tools.CompileHelper,
		CompileWorkers: compilers,
		DescribeFuel:   c.Tools.DescribeFuel,
		Logger:         slog.New(requestIDs{s.Logger.Handler()}),
	})
	if err != nil {
		return fmt.Errorf("start the sandbox engine: %w", err)
	}
	return nil
}

// start starts to follow the files, and puts the first configuration in force.
func (s *Service) start(ctx context.Context, c *config.Config, own []*wasmtools.Tool) error {
	if _, err := s.State.open(ctx, c); err != nil {
		return err
	}
	first, err := s.Configure(c)
	if err != nil {
		return err
	}
	if err := s.openTokens(c); err != nil {
		return err
	}
	store, err := s.State.For(c)
	if err != nil {
		return err
	}
	s.Brought = brought.Open(ctx, store, s.secrets, s.Logger)
	s.Switches, err = switches.Open(ctx, store, s.Table)
	unread := trouble.New(s.Logger, slog.LevelError, "operators' switches can't be read, and may not be in force", "operators' switches are in force again")
	unread.Set(err)
	s.Versions = openVersions(ctx, s, c, store)
	s.Keys = s.State.keys(ctx, c, store)
	if err := s.sources.follow(store); err != nil {
		return err
	}
	in := forCatalog(first)
	s.Catalog, err = catalog.Start(ctx, catalog.Options{
		Sources: s.sources.All,
		Engine:  s.Engine,
		Table:   s.Table,
		Limits:  in.Limits,
		Grants:  in.Grants,
		Pins:    in.Pins,
		Policy:  in.Policy,
		Value:   in.Value,
		Tools:   own,
		Logger:  s.Logger,

		Rollbacks: s.Versions,
		Paths:     s.State.paths(),
	})
	if err != nil {
		return fmt.Errorf("start the catalog: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stopKeeper = stop
	s.keeping.Go(func() { keeper{s}.run(background) })
	s.keeping.Go(func() { s.Keys.Follow(background) })
	if peers := s.State.Peers(); peers != nil {
		s.keeping.Go(func() { s.Rates.Share(background, peers) })
	}
	if s.State.InNATS() { // where other processes make changes, too
		s.keeping.Go(func() { s.Switches.Follow(background, func(err error) { unread.Set(err) }) })
		s.keeping.Go(func() { s.Brought.Follow(background) })
	}
	return nil
}

// openTokens reads the tokens of the state.
func (s *Service) openTokens(c *config.Config) error {
	store, err := s.State.For(c)
	if err != nil {
		return err
	}
	o := tokens.Options{Logger: s.Logger}
	directory := s.State.Directory()
	if s.State.InNATS() && c.State.Directory != "" && local.MakeDirectory(c.State.Directory) == nil {
		directory, o.Unmarked = c.State.Directory, true // the marks are on this machine's disk, and in a container that may be read-only
	}
	if directory != "" {
		o.Mark = filepath.Join(directory, "tokens.made")
	}
	s.Tokens = tokens.Open(store, o)
	return nil
}

// openSources opens the files in Options or, if there are none, the configured sources.
func (s *Service) openSources(c *config.Config, files []string) (err error) {
	if len(files) > 0 {
		s.sources, err = openFiles(files, s.Logger)
		return err
	}
	if dir, err := CacheDir(c); err == nil && len(c.Tools.ScriptHelper) > 0 && slices.ContainsFunc(configured.Sources(c), func(s config.Source) bool { return s.Scripts }) {
		// The engine keeps compiled code in the same directory, so it reports what is wrong with that directory.
		s.scripts, _ = script.OpenMemory(dir, c.Tools.ScriptHelper)
	}
	claim := func(bytes int64) func() { return s.Engine.Claim(min(bytes, s.Engine.Memory()/2)) } // the rest is left to calls
	s.sources, err = openSources(c, s.Logger, s.scripts, claim)
	return err
}

// room takes memory for validating arguments from the memory of tools.
func (s *Service) room(ctx context.Context, bytes int64) (give func(), err error) {
	if give, err = s.Engine.Room(ctx, bytes); errors.Is(err, sandbox.ErrTooMuch) {
		return nil, invoker.ErrTooMuch
	}
	return give, err
}

// LogReady waits until all tools are listed, and logs that. It returns false if ctx ends first.
func (s *Service) LogReady(ctx context.Context) bool {
	if err := s.Catalog.Wait(ctx); err != nil {
		return false
	}
	generation := s.Table.Current()
	s.Logger.Info("ready", "tools", len(generation.Routes()), "refused", len(generation.Refused()),
		"took", time.Since(s.Began).Round(time.Millisecond).String())
	return true
}

// Directories returns the directories and buckets that are served, in which files can be put.
func (s *Service) Directories() (all []Directory) {
	for _, d := range s.sources.directories {
		all = append(all, Directory{ID: d.ID(), Path: d.Place("."), Name: d.called, told: d.called != "" && len(s.sources.All) > 1, Scripts: d.scripts})
	}
	for _, b := range s.sources.buckets {
		all = append(all, Directory{ID: b.ID(), Path: b.ID(), Name: b.called, told: b.called != "" && len(s.sources.All) > 1, Scripts: b.scripts, Bucket: b.Bucket})
	}
	return all
}

// Close closes everything, and waits for running calls. Call it after everything that uses the Service has been closed. A second Close returns the
// result of the first.
func (s *Service) Close() error {
	s.once.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Service) close() error {
	var errs []error
	if s.stopKeeper != nil {
		s.stopKeeper()
		s.keeping.Wait()
	}
	if s.Catalog != nil {
		errs = append(errs, s.Catalog.Close())
	}
	if s.sources != nil {
		errs = append(errs, s.sources.Close())
	}
	if s.scripts != nil {
		_ = s.scripts.Close() // if this fails, at worst a folder is left behind
	}
	if s.Engine != nil {
		errs = append(errs, s.Engine.Close(context.Background()))
	}
	if s.Tokens != nil {
		errs = append(errs, s.Tokens.Close())
	}
	s.Metrics.Close()
	s.Audit.Close()
	s.Events.Close()
	errs = append(errs, s.State.Close())
	if s.Tracer != nil {
		s.Tracer.Close() // last: a collector may be slow, and that must not keep the state open
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the service: %w", err)
	}
	return nil
}

// Pack returns a module with a manifest inside, in place of any that it has. It is for programs with functions of their own, which the module may
// import. Pack fails if the service could not serve the file.
func (s *Service) Pack(ctx context.Context, module, manifest []byte) ([]byte, error) {
	packed, _, err := toolfile.Pack(ctx, s.Engine, module, manifest)
	return packed, err
}
