package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/directory"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/session"
	"github.com/toolsrv/toolsrv/wasmtools/script"
)

// listPatience is how long the client's first message may wait until all tools are listed. Most clients ask for the list once. Codex
// gives a server ten seconds to start, others give it thirty and more.
const listPatience = 5 * time.Second

// StdioOptions are the settings of ServeStdio. In and Out are required.
type StdioOptions struct {
	// In has the client's messages, and Out gets the server's. Nothing else is written to Out.
	In  io.Reader
	Out io.Writer
	// Files are paths of .wasm files and scripts that are served instead of the configured directory.
	Files []string
	// Tools are those of the program itself. They are served beside those of the files.
	Tools []*wasmtools.Tool
	// Logger is the log. Nil discards.
	Logger *slog.Logger
}

// ServeStdio serves tools over MCP to the one client at the other end of In and Out, such as the program that started this one.
// It listens on no address, and asks for no token: who starts a program may call all that it has. Of the configuration, limits,
// switches and tools hold.
//
// It returns nil when In ends or ctx does. Calls that still run then have 5 seconds to finish, or are cancelled at once where it
// was ctx. A Read of In may go on after that, as nothing can end one of standard input. A missing directory or file is an
// error, and so is an Out that can't be written to; a refused file is not.
func ServeStdio(ctx context.Context, c *config.Config, o StdioOptions) error {
	return serveStdio(ctx, c, o, listPatience)
}

func serveStdio(ctx context.Context, c *config.Config, o StdioOptions, patience time.Duration) (err error) {
	k := newCore(o.Logger)
	defer func() {
		if failed := k.close(); failed != nil {
			err = errors.Join(err, fmt.Errorf("close the server: %w", failed))
		}
	}()
	if err := k.openFor(ctx, c, o); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it had begun
		}
		return err
	}
	set := k.toolset(c)
	defer set.Close()

	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if k.logReady(ctx) {
			k.warnUnmatched(c)
		}
	}()
	defer func() { cancel(); <-ready }()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-ready:
	case <-limit.C:
		k.logger.Warn("the client does not wait for files that take long to be read or described: embed manifests with `toolsrv pack`")
	case <-ctx.Done():
		return nil
	}
	return session.Stdio(ctx, set, o.In, o.Out, session.StdioOptions{Ready: ready, Logger: k.logger})
}

// openFor opens the files, or the configured directory.
func (k *core) openFor(ctx context.Context, c *config.Config, o StdioOptions) error {
	if len(o.Files) == 0 {
		if err := CheckDirectory(c); err != nil {
			return err
		}
		return k.openDirectory(ctx, c, k.configure, o.Tools)
	}
	files, err := directory.OpenFiles(o.Files, directory.Options{Logger: k.logger, Scripts: script.Builder{}})
	if err != nil {
		return err
	}
	k.source = files
	return k.open(ctx, c, k.configure, "", o.Tools)
}
