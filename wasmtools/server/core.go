package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/catalog"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools/script"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// A core is what is below all doors: the files, what runs them, the table of their tools and the way to call them.
type core struct {
	logger  *slog.Logger  // keeps secrets out
	secrets *secret.Store // of all grants
	began   time.Time     // when it was made

	complaints []complaint // what warnUnmatched has logged last, for one goroutine at a time

	source  source
	scripts *script.Memory // nil: none
	engine  *sandbox.Engine
	catalog *catalog.Catalog
	invoker *invoke.Invoker // of all doors, so that they share its memory
	broker  *capability.Broker
	outside *connections // those of tools; with a Server, those of clients, too
}

// A source is where the files come from.
type source interface {
	catalog.Source
	io.Closer
}

func newCore(logger *slog.Logger) *core {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	k := &core{began: time.Now(), outside: &connections{all: allConnections(account.MachineDescriptors())}}
	k.invoker = invoke.New(invoke.Options{
		Memory: bodyMemory(account.MachineMemory()),
		Hurry:  func() bool { return k.outside.hurry() },
		Room:   k.room,
	})
	k.secrets = secret.NewStore(func() *secret.Values {
		if c := k.inForce(); c != nil {
			return c.grants.Secrets()
		}
		return nil
	})
	k.logger = slog.New(k.secrets.Handler(logger.Handler()))
	return k
}

// room takes memory for checks of arguments from what tools may take.
func (k *core) room(ctx context.Context, bytes int64) (give func(), err error) {
	if give, err = k.engine.Room(ctx, bytes); errors.Is(err, sandbox.ErrTooMuch) {
		return nil, invoke.ErrTooMuch
	}
	return give, err
}

// A configurer makes a configuration, when there is what its grants need.
type configurer func(c *config.Config) (*configuration, error)

// openDirectory begins to serve the files of the configured directory, and tools of the program itself. After an error, close
// closes what was opened.
func (k *core) openDirectory(ctx context.Context, c *config.Config, configure configurer, tools []*wasmtools.Tool) error {
	if dir, err := CacheDir(c); err == nil && c.Tools.Scripts && len(c.Tools.ScriptHelper) > 0 {
		// What is wrong with the directory the engine tells, which keeps compiled code there.
		k.scripts, _ = script.OpenMemory(dir, c.Tools.ScriptHelper)
	}
	claim := func(bytes int64) func() { return k.engine.Claim(min(bytes, k.engine.Memory()/2)) } // the rest is left to calls
	files, err := openDirectory(c, k.logger, k.scripts, claim)
	if err != nil {
		return fmt.Errorf("open the tools directory: %w", err)
	}
	k.source = files
	return k.open(ctx, c, configure, RecordFile(c), tools)
}

// open starts the engine, and a catalog of what the source has.
func (k *core) open(ctx context.Context, c *config.Config, configure configurer, record string, tools []*wasmtools.Tool) (err error) {
	k.engine, err = sandbox.New(ctx, sandbox.Config{
		Imports:       toolfile.Imports(),
		CacheDir:      k.cacheDir(c),
		Memory:        c.Server.Memory,
		CodeMemory:    c.Server.CodeMemory,
		CompileHelper: c.Tools.CompileHelper,
		Logger:        slog.New(requestIDs{k.logger.Handler()}),
	})
	if err != nil {
		return fmt.Errorf("start the sandbox engine: %w", err)
	}
	k.broker, err = capability.Open(c, capability.Options{
		Table:   func() *wasmtools.RouteTable { return k.catalog.Table() }, // asked in calls only
		Invoker: k.invoker,
		Secrets: k.secrets,

		Connections: k.outside,
		Logger:      k.logger,
	})
	if err != nil {
		return fmt.Errorf("prepare what tools may reach: %w", err)
	}
	first, err := configure(c)
	if err != nil {
		return err
	}
	k.catalog, err = catalog.Start(ctx, catalog.Options{
		Source: k.source,
		Engine: k.engine,
		Limits: first.LimitsFor,
		Grants: first.grants,
		Policy: policy(c),
		Value:  first,
		Record: record,
		Tools:  tools,
		Logger: k.logger,
	})
	if err != nil {
		return fmt.Errorf("start the catalog: %w", err)
	}
	return nil
}

// toolset returns the tools as MCP shows them. The caller closes it, before the core.
func (k *core) toolset(c *config.Config) *toolset.Set {
	return toolset.New(k.catalog.Table(), toolset.Options{
		Invoker:   k.invoker,
		Info:      toolset.Info{Title: c.Title, Version: c.Version, Instructions: c.Description},
		Discovery: toolset.Discovery(c.MCP.Discovery),
		Logger:    k.logger,
	})
}

// logReady waits until all tools are listed, and logs that they are. It reports false if that was not so before ctx ended.
func (k *core) logReady(ctx context.Context) bool {
	if err := k.catalog.Wait(ctx); err != nil {
		return false
	}
	generation := k.catalog.Table().Current()
	k.logger.Info("ready", "tools", len(generation.Routes()), "refused", len(generation.Refused()),
		"took", time.Since(k.began).Round(time.Millisecond).String())
	return true
}

// close closes what was opened, after the doors.
func (k *core) close() error {
	var errs []error
	if k.catalog != nil {
		errs = append(errs, k.catalog.Close())
	}
	if k.source != nil {
		errs = append(errs, k.source.Close())
	}
	if k.scripts != nil {
		_ = k.scripts.Close() // it leaves a folder behind at worst
	}
	if k.engine != nil {
		errs = append(errs, k.engine.Close(context.Background()))
	}
	if k.broker != nil {
		errs = append(errs, k.broker.Close())
	}
	return errors.Join(errs...)
}
