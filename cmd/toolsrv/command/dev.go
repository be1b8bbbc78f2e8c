package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/author/project"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// lookInterval is how often `toolsrv dev` looks for changed sources: far less than a build takes.
const lookInterval = 100 * time.Millisecond

// dev holds the flags of `toolsrv dev`.
type dev struct {
	address  string
	logLevel slog.Level
}

func newDev() *cobra.Command {
	d := dev{logLevel: slog.LevelDebug}
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Build and serve the tool in a folder, and again at every change",
		Long: `Build the tool whose source is in DIR, or here, and serve it; whenever a source
changes, build and serve it again. What the compiler says is shown, and the last
version that could be built goes on serving. Interrupt it (Ctrl-C) to end.

It serves without tokens, on this machine only unless --address says otherwise.`,
		Example: `  toolsrv dev greet`,
		Args:    oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.address == "" {
				return &usageError{errors.New("--address is empty: give it a value or leave it out")}
			}
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			return d.run(ctx, folderOf(args), cmd)
		},
		ValidArgsFunction: completeFolder,
	}
	flags := cmd.Flags()
	flags.StringVar(&d.address, "address", "127.0.0.1:8000", "`host:port` to listen on; port 0 takes any free one")
	addLevelFlag(cmd, &d.logLevel, "that is logged")
	completeFlag(cmd, "address", cobra.NoFileCompletions)
	return cmd
}

// run serves a directory of its own, into which the builds go, until ctx ends.
func (d *dev) run(ctx context.Context, dir string, cmd *cobra.Command) error {
	if _, err := project.Open(dir); err != nil { // a wrong folder should not start a server
		return err
	}
	temp, err := os.MkdirTemp("", "toolsrv-dev-")
	if err != nil {
		return fmt.Errorf("make a folder for the builds: %w", err)
	}
	defer os.RemoveAll(temp)
	c := config.Default()
	c.Server.Address = d.address
	c.Tools.Directory = filepath.Join(temp, "tools")
	// Builds of a moment would push what servers of this machine need out of the common cache.
	c.Tools.CacheDir = filepath.Join(temp, "cache")
	if err := os.Mkdir(c.Tools.Directory, 0o700); err != nil {
		return fmt.Errorf("make a folder for the builds: %w", err)
	}
	logger := newLogger(cmd.ErrOrStderr(), d.logLevel)
	s, err := server.New(ctx, c, logger)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel() // nobody needs builds any more
		served <- s.Run(ctx)
	}()
	err = d.follow(ctx, dir, c.Tools.Directory, cmd, logger)
	cancel()
	return errors.Join(err, <-served)
}

// follow builds the project into the folder tools at every change, until ctx ends. A build that makes the same module as
// the one before says nothing: what has changed was no source, and may well be a file that our own output goes to.
func (d *dev) follow(ctx context.Context, dir, tools string, cmd *cobra.Command, logger *slog.Logger) error {
	logger.Info("building", "folder", dir)
	sources := project.Watch(dir, lookInterval)
	var served []byte
	for failed := true; ; {
		switch err := sources.Wait(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("look for changed sources: %w", err)
		}
		start := time.Now()
		module, err := compile(ctx, dir, cmd.ErrOrStderr())
		same := bytes.Equal(module, served)
		if err == nil && !same {
			err = replaceFile(filepath.Join(tools, "tool.wasm"), module)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && served == nil:
			logger.Error("not built: nothing is served yet", "error", err)
		case err != nil:
			logger.Error("not built: the last version that could be built goes on serving", "error", err)
			failed = true
		case failed || !same:
			logger.Info("built", "took", time.Since(start).Round(time.Millisecond).String(), "size", sizeText(len(module)))
			served, failed = module, false
		}
	}
}

// compile compiles the project. Its manifest is left to the server, which asks the module for it: that way it is
// compiled to machine code once. The project is opened anew, since its language may have changed.
func compile(ctx context.Context, dir string, stderr io.Writer) ([]byte, error) {
	p, err := project.Open(dir)
	if err != nil {
		return nil, err
	}
	return p.Compile(ctx, stderr)
}

// untilInterrupted returns a context that the first SIGINT, SIGTERM or SIGHUP ends; a second one ends the process. A terminal
// that is closed sends SIGHUP, and compilers, which are in groups of their own, would not hear of it; under nohup it is ignored.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
