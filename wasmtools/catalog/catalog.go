// Package catalog turns a directory of .wasm files into a [wasmtools.RouteTable] and keeps the table in step with it.
//
// # What counts
//
// Every regular file named *.wasm in the directory or a folder below it (at most 16 deep) is a module, of at most
// 64 MiB. Names that begin with "." or end in "~" or ".tmp" are skipped, folders of such names with all they hold. At
// most Options.Modules are served; what is beyond is reported, not served.
//
// A file is taken whole or refused whole. A refused file stops nothing: it is logged, reported by
// [wasmtools.Generation.Refused], and where an older version of it is served, that one stays. Of two files that want
// the same path or operation id, the one that is served keeps it, and the other waits, refused, until it is free, after a
// restart, too: Options.Record. Where nothing is known of before, the order at the first scan is that of the paths, files with a
// manifest section before those that must be run to be described; until all of these are known, one that comes later in this order may serve the path for a moment.
//
// A file that is written where it is counts once nothing was written to it for 400 ms; write it under another name (one
// that is skipped) and rename it, and it is taken at once, however it was written.
//
// Symbolic links are followed to files and folders within the directory (Kubernetes mounts a ConfigMap as links into a
// hidden folder), never out of it, whoever made them; absolute links count as leading out. A link to a folder that
// holds the link, or below another linked folder, is reported and not followed, so that no loop multiplies tools.
//
// # When the directory itself goes away
//
// A directory or folder that can't be read, and a directory in whose place there is an empty one (an unmounted
// volume), is reported loudly and taken for a fault, not for the wish to remove every tool: what was served stays. A
// folder that is removed takes its tools along.
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

	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Options say what a Catalog serves and how. Directory and Engine are required.
type Options struct {
	// Directory is searched with its folders.
	Directory string
	// Modules is how many modules of the directory are served at most; 0 means DefaultModules.
	Modules int
	// Engine runs the modules. It must stay open until the Catalog is closed.
	Engine *sandbox.Engine
	// Limits returns the limits of the tool at a path such as "/math/add". It is called once for each version of a
	// tool and by Reconfigure, from any goroutine, and must be fast. Nil means the sandbox's defaults.
	Limits func(path string) sandbox.Limits
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
	// Poll is the time between two looks at the directory where the system can't tell of changes; 0 means 500 ms.
	// Where it can, there is a look every 10 Poll for safety.
	Poll time.Duration
	// PollOnly does without the system's file notification, for file systems where that works without an error but
	// tells nothing of other machines' changes (NFS, SMB).
	PollOnly bool
}

// A Catalog is a directory of modules and the table that follows it. Its methods are safe for concurrent use.
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

// Start begins to read the directory, and keeps watching it until Close. It returns before the files are read: Wait waits
// for them, while the table fills. ctx is for the start only. A refused file is no error; a directory that can't be read is.
func Start(ctx context.Context, o Options) (*Catalog, error) {
	if o.Directory == "" {
		return nil, errors.New("open catalog: Options.Directory is empty: name the folder that holds the .wasm files")
	}
	if o.Engine == nil {
		return nil, errors.New("open catalog: Options.Engine is nil: make one with sandbox.New")
	}
	if err := readable(o.Directory); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
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

// Table returns the table that follows the directory, the same one at every call. It outlives the Catalog, its tools don't.
func (c *Catalog) Table() *wasmtools.RouteTable { return c.table }

// Ready returns nil once the table tells of every file of the first scan, including those that are run to be described; for
// those that run long, or change all the time, it does not wait more than half a minute.
func (c *Catalog) Ready() error {
	switch n := c.reconciler.unready.Load(); {
	case n < 0:
		return errors.New("the tools directory has not been listed yet")
	case n > 0:
		return fmt.Errorf("%d files of the tools directory are still being read, or run to be described", n)
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
// It fails when the Catalog is closed.
func (c *Catalog) Reconfigure(limits func(path string) sandbox.Limits, p wasmtools.Policy) error {
	ready := make(chan struct{})
	select {
	case c.do <- func() { c.reconciler.reconfigure(limits, p); close(ready) }:
		<-ready
		return nil
	case <-c.done:
		return errors.New("reconfigure catalog: it is closed")
	}
}

// Close stops watching, waits for what runs in the background, and closes all programs; calls that run finish. A second
// call does nothing more.
func (c *Catalog) Close() error {
	c.cancel()
	<-c.done
	return nil
}
