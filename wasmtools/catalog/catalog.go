// Package catalog turns the .wasm files of a source into a [wasmtools.RouteTable] and keeps the table in step with them.
//
// A [Source] lists files and opens them: package directory has the one for a directory on disk.
//
// # What is served
//
// A file of at most 64 MiB is taken whole or refused whole. A refused file stops nothing: it is logged, reported by
// [wasmtools.Generation.Refused], and where an older version of it is served, that one stays. Of two files that want
// the same path or operation id, the one that is served keeps it, and the other waits, refused, until it is free, after a
// restart, too: Options.Record. Where nothing is known of before, the order at the first listing is that of the names, files
// with a manifest section before those that must be run to be described; until all of these are known, one that comes later
// in this order may serve the path for a moment.
//
// A source that can't be listed is reported, and what was served stays. A file that can't be read is reported and tried again.
//
// # Lifetimes
//
// Files are read side by side, the small ones first, and listed from their manifests as soon as they are read; programs
// compile in the background. A file without a manifest section is compiled and run before it is listed, and a new version
// of a file that is served is compiled before it takes the place of the old. A version that was replaced is closed after
// the swap: calls that run, or were about to begin, finish on it.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Options say what a Catalog serves and how. Source and Engine are required.
type Options struct {
	// Source is where the files come from. It belongs to the Catalog's caller, and must stay open until the Catalog is closed.
	Source Source
	// Engine runs the modules. It must stay open until the Catalog is closed.
	Engine *sandbox.Engine
	// Limits returns the limits of the tool at a path such as "/math/add". It is called once for each version of a
	// tool and by Reconfigure, from any goroutine, and must be fast. Nil means the sandbox's defaults.
	Limits func(path string) limits.Limits
	// Record names a file, in a folder that is there, in which the Catalog notes which files keep a path from which others, so
	// that the next one decides alike. Empty: after a restart the order of the paths decides.
	Record string
	// Policy says which tools start enabled.
	Policy wasmtools.Policy
	// Tools are tools of the program itself, such as those of [wasmtools.NewTool]. They are in the table from the start
	// and stay there; a file that wants the path or operation id of one is refused. Limits do not reach them.
	Tools []*wasmtools.Tool
	// Logger gets a line for each tool that comes, changes or goes and one for each file that is refused. Nil discards.
	Logger *slog.Logger
	// Poll is the time between two tries to list a source that can't be listed; 0 means 500 ms. The Catalog's other periods
	// follow from it.
	Poll time.Duration
}

// A Catalog is the files of a source and the table that follows them. Its methods are safe for concurrent use.
type Catalog struct {
	table      *wasmtools.RouteTable
	do         chan<- func()
	cancel     context.CancelFunc
	done       chan struct{}
	reconciler *reconciler
}

// Open is Start and Wait.
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

// Start begins to read the source, and follows it until Close. It returns before the files are read: Wait waits for them,
// while the table fills. ctx is for the start only.
func Start(ctx context.Context, o Options) (*Catalog, error) {
	if o.Source == nil {
		return nil, errors.New("open catalog: Options.Source is nil: directory.Open makes one")
	}
	if o.Engine == nil {
		return nil, errors.New("open catalog: Options.Engine is nil: make one with sandbox.New")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	table, err := wasmtools.NewRouteTable(o.Tools...)
	if err != nil {
		return nil, fmt.Errorf("open catalog: tools of the program: %w", err)
	}
	table.SetPolicy(o.Policy)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := newReconciler(background, o, table)
	c := &Catalog{table: table, do: r.do, cancel: cancel, done: make(chan struct{}), reconciler: r}
	go func() {
		defer close(c.done)
		r.run()
		r.close()
	}()
	return c, nil
}

// Table returns the table that follows the source, the same one at every call. It outlives the Catalog, its tools don't.
func (c *Catalog) Table() *wasmtools.RouteTable { return c.table }

// Ready returns nil once the table tells of every file of the first listing, including those that are run to be described; for
// those that run long, or change all the time, it does not wait more than half a minute.
func (c *Catalog) Ready() error {
	switch n := c.reconciler.unready.Load(); {
	case n < 0:
		return errors.New("the tools have not been listed yet")
	case n > 0:
		return fmt.Errorf("%d tool files are still being read, or run to be described", n)
	}
	return nil
}

// Wait waits until Ready returns nil. It fails where ctx ends first, and where the Catalog is closed.
func (c *Catalog) Wait(ctx context.Context) error {
	select {
	case <-c.reconciler.ready:
		return nil
	case <-c.done:
		return errors.New("wait for the catalog: it is closed")
	case <-ctx.Done():
		return fmt.Errorf("wait for the catalog: %w", context.Cause(ctx))
	}
}

// Settled reports whether the table tells of every file that was seen: otherwise a tool that is not in it may be in a
// moment. Once it returns true, the table is as new. Where files keep coming after the start, or run long to be described, it
// returns true after half a minute all the same.
func (c *Catalog) Settled() bool { return !c.reconciler.unsettled.Load() }

// Reconfigure puts new limits (nil: the sandbox's defaults) and a new policy in the place of those of Options. Programs
// are not compiled again, and a tool whose limits are the same keeps its calls and its queue. When it returns, both hold.
// A file that was refused
// because its tool had too little memory is read again: until it is, Settled returns false. It fails when the Catalog is closed.
func (c *Catalog) Reconfigure(limitsFor func(path string) limits.Limits, p wasmtools.Policy) error {
	ready := make(chan struct{})
	select {
	case c.do <- func() { c.reconciler.reconfigure(limitsFor, p); close(ready) }:
		<-ready
		return nil
	case <-c.done:
		return errors.New("reconfigure catalog: it is closed")
	}
}

// Close stops following, waits for what runs in the background, and closes all programs; calls that run finish. A second
// call does nothing more.
func (c *Catalog) Close() error {
	c.cancel()
	<-c.done
	return nil
}
