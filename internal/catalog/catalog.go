// Package catalog turns the .wasm files of sources into a [wasmtools.RouteTable] and keeps the table in step with them.
//
// A [Source] lists files and opens them: package directory has the one for a directory on disk. The Catalog makes a module of a script,
// and makes it again when its files change. A broken script is tried again whenever anything around it changes, since a missing file may have been
// added.
//
// # What is served
//
// A file of at most 64 MiB is served whole or refused whole. A refused file stops nothing else: it is logged, reported by
// [wasmtools.Generation.Refused], and an older version of it that is served stays.
//
// If two files want the same path or operation id, the one that is served keeps it. The other is refused, and waits until the path is free. With
// [Sourced.Record] this outlasts a restart. Without a record, files with a manifest section come before those that
// must be run to be described, and then, at the start, the order of the sources and of the names decides. Until all of these are known, a
// file that comes later in this order may serve the path for a moment.
//
// A source that can't be listed is reported and tried again, and what was served stays. It holds up no other source: the table is ready without it,
// unless it is the only one. As long as it has never been listed, no file of another source gets a path that one of its files
// had before the start. A file that can't be read is reported and tried again.
//
// # Lifetimes
//
// Files are read concurrently, the small ones first. A file with a manifest section is served as soon as it is read, and
// compiled in the background. A file without one is compiled and run first. A new version of a file that is served is compiled
// before it replaces the old one, which is closed after that: calls that run, or were about to begin, finish on it.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Sourced is a source and how a Catalog serves it.
type Sourced struct {
	// Name is the source's name in messages. If empty, messages say where the source lies. If there are several sources, the name follows the place
	// of each file.
	Name string
	// Source is where files come from. The caller closes it, after the Catalog.
	Source Source
	// Record names a file in an existing folder. The Catalog notes in it which files of the source wait for a path that another file has, so that the
	// next Catalog decides the same. If empty, the order decides after a restart.
	Record string
	// Scripts makes modules of the source's scripts. If nil, they are refused.
	Scripts Builder
	// Namespaces are the namespaces in which the files may have tools, each with those below it; "" is the namespace of tools without one.
	// If nil, all namespaces that no other source names.
	Namespaces []string
	// Prefix is put before the namespace that a file's manifest or folder gives. It may be empty.
	Prefix string
	// Most is how many modules and scripts of the source are served; 0 means 10,000. The source may list ten times as
	// many files in all, including the parts of scripts, or 100,000 if that is more.
	Most int
}

// Options say what a Catalog serves and how. Sources and Engine are required.
type Options struct {
	// Sources are where the files come from. Each must have a different ID. If nothing else decides which file gets a path, the order of the sources
	// does.
	Sources []Sourced
	// Engine runs the modules. The caller closes it, after the Catalog.
	Engine *sandbox.Engine
	// Table gets the tools, in place of the ones that it has. If nil, the Catalog makes one.
	Table *wasmtools.RouteTable
	// Limits returns the limits of the tool at a path such as "/math/add". It is called once for each version of a
	// tool and by Reconfigure, from any goroutine, and must be fast. Nil means the sandbox's defaults.
	Limits func(path string) limits.Limits
	// Grants says which of the things that tools need were granted. It is called when Limits is. Nil grants nothing.
	Grants toolfile.Granter
	// Pins say which content files must have. If nil, files may have any content.
	Pins Pins
	// Policy says which tools start enabled.
	Policy wasmtools.Policy
	// Value is published with each generation: see [wasmtools.Configuration].
	Value any
	// Paths is the space [PathsSpace] of a state that processes with the same sources share. If two files want one path, all these processes serve
	// the same file. Sources are the same if they have the same name, or no name and the same ID. If nil, each process decides for itself.
	Paths state.Space
	// Rollbacks say which modules were rolled back. If nil, none.
	Rollbacks Rollbacks
	// Tools are tools that the program itself implements, made by [gotool.New] for example. They are in the table from the start
	// and stay there. A file that wants the path or operation id of one is refused. Limits does not apply to them.
	Tools []*wasmtools.Tool
	// Logger gets a line for each tool that is added, replaced or removed, and for each file that is refused. Nil discards.
	Logger *slog.Logger
	// Poll is the time between two tries to list a source that can't be listed; 0 means 500 ms. The Catalog's other periods
	// follow from it.
	Poll time.Duration
}

// A Catalog serves the files of sources in a table that follows them. Its methods are safe for concurrent use.
type Catalog struct {
	table      *wasmtools.RouteTable
	do         chan<- func()
	cancel     context.CancelFunc
	done       chan struct{}
	reconciler *reconciler
}

// Open starts a Catalog as Start does, and waits until it is ready.
func Open(ctx context.Context, o Options) (*Catalog, error) {
	c, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := c.Wait(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Start follows the sources until Close. It returns before the files are read: the table fills, and Wait waits for that. ctx is
// for the start only.
func Start(ctx context.Context, o Options) (*Catalog, error) {
	if err := checkSources(o.Sources); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if o.Engine == nil {
		return nil, errors.New("open catalog: Options.Engine is nil: make one with sandbox.New")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	table := o.Table
	if table == nil {
		var err error
		if table, err = wasmtools.NewRouteTable(); err != nil {
			return nil, fmt.Errorf("open catalog: %w", err)
		}
	}
	if err := table.Configure(o.Tools, nil, wasmtools.Configuration{Policy: o.Policy, Value: o.Value}); err != nil {
		return nil, fmt.Errorf("open catalog: tools of the program: %w", err)
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := newReconciler(background, o, table, o.Engine.Memory())
	c := &Catalog{table: table, do: r.do, cancel: cancel, done: make(chan struct{}), reconciler: r}
	table.SetComing(func(path string) bool {
		if path == "/" {
			return !c.Synced()
		}
		return !c.SyncedAt(path)
	})
	go func() {
		defer close(c.done)
		r.run()
		r.close()
	}()
	return c, nil
}

// checkSources returns an error unless there are sources that can be told apart.
func checkSources(sources []Sourced) error {
	if len(sources) == 0 {
		return errors.New("Options.Sources is empty: directory.Open makes one")
	}
	known := map[string]bool{}
	for _, s := range sources {
		if s.Source == nil {
			return errors.New("one of Options.Sources is nil: directory.Open makes one")
		}
		id := s.Source.ID()
		if known[id] {
			return fmt.Errorf("the source %q is listed twice", id)
		}
		known[id] = true
	}
	return nil
}

// Table returns the table that follows the sources, the same at every call. It may be used after Close, but its tools fail.
func (c *Catalog) Table() *wasmtools.RouteTable { return c.table }

// Ready returns nil once the table shows every file of the first listing, served or refused. Ready waits at most half a minute for files that take
// long to be read or described, or that keep changing.
func (c *Catalog) Ready() error {
	switch n := c.reconciler.unready.Load(); {
	case n < 0:
		return errors.New("the tools have not been listed yet")
	case n == 1:
		return errors.New("1 tool file is still being read, or run for its description")
	case n > 0:
		return fmt.Errorf("%d tool files are still being read, or run for their descriptions", n)
	}
	return nil
}

// Wait waits until Ready returns nil. It fails when ctx ends first, or the Catalog is closed.
func (c *Catalog) Wait(ctx context.Context) error { return c.wait(ctx, c.reconciler.ready) }

func (c *Catalog) wait(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		return nil
	case <-c.done:
		return errors.New("wait for the catalog: it is closed")
	case <-ctx.Done():
		return fmt.Errorf("wait for the catalog: %w", context.Cause(ctx))
	}
}

// Compiled reports whether Ready returns nil and all that is served is compiled, so that no call has to wait for a compilation.
func (c *Catalog) Compiled() bool { return c.reconciler.idle.Load() }

// WaitCompiled waits until Compiled returns true for the first time. It fails as Wait does.
func (c *Catalog) WaitCompiled(ctx context.Context) error { return c.wait(ctx, c.reconciler.compiled) }

// Synced reports whether the table shows every file that was listed. While it is false, a missing tool may appear in a moment. After the start it
// becomes true within half a minute, even if files keep coming, or take long to be described.
func (c *Catalog) Synced() bool { return !c.reconciler.unsynced.Load() }

// SyncedAt reports whether a path that is not in the table will not be in it in a moment either: no file that is being read, has just been read or
// has just been removed could bring it. After the start, such files are those in the path's folder or with tools there, new files at the top of the
// source, whose namespace is not known yet, and files that had a tool at the path. If Synced returns true, so does SyncedAt.
func (c *Catalog) SyncedAt(path string) bool { return c.Synced() || !c.reconciler.coming.may(path) }

// A Configuration is what the operator decides, and may change while the catalog runs. Its fields are as in [Options].
type Configuration struct {
	Limits func(path string) limits.Limits
	Grants toolfile.Granter
	Pins   Pins
	Policy wasmtools.Policy
	Value  any
}

// Reconfigure replaces the configuration. All of it takes effect at one moment, before Reconfigure returns: the new tools are made while the old ones
// are served, and are published as one generation. Programs are not compiled again, and a tool whose limits
// and grants are the same keeps its calls and its queue. A file that was refused by a pin, or because its tool had too little memory, is read again.
// Until then Synced returns false. Reconfigure fails when the Catalog is closed.
func (c *Catalog) Reconfigure(to Configuration) error {
	done := make(chan error, 1)
	select {
	case c.do <- func() { done <- c.reconciler.reconfigure(to) }:
		return <-done
	case <-c.done:
		return errors.New("reconfigure catalog: it is closed")
	}
}

// Close stops following the sources, waits for background work, and closes all programs. Running calls finish. A second Close does nothing.
func (c *Catalog) Close() error {
	c.cancel()
	<-c.done
	return nil
}
