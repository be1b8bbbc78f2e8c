package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/heap"
	"github.com/toolsrv/toolsrv/internal/journal"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/internal/supervisor"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// defaultConfig is read if it exists and no --config names another file.
const defaultConfig = "toolsrv.toml"

// openAPI holds the flags of `toolsrv openapi`.
type openAPI struct {
	config     string
	address    string
	tokens     []string
	tokensFile string
	logLevel   slog.Level
	program    string // the path of the program for a restart
	supervisor *supervisor.Supervisor
	activated  bool // the supervisor has opened the listeners
}

func newOpenAPI() *cobra.Command {
	var o openAPI
	cmd := &cobra.Command{
		Use:     "openapi",
		Aliases: []string{"serve"}, // the name of this command in other programs
		Short:   "Serve the tools of a directory as a REST API with an OpenAPI document",
		Long: `Serve the tools of a directory as a REST API: POST /{namespace}/{tool} calls one,
GET /tools lists them, GET /openapi.json describes them.

Without --config, ./toolsrv.toml is read if it exists; otherwise the defaults apply. Flags override
the file. If the configuration is wrong, the server does not start, and the exit code is 1.

SIGHUP reads the configuration and the tokens again. If they are wrong, that is logged, and the old
ones stay in force. SIGTERM and SIGINT let running calls finish, then end the server with exit code
0. A second one, at least half a second later, ends it at once with exit code 1.

SIGUSR2 restarts the server in place. That also applies keys that a reload does not, and starts a
new version of the program if its file was replaced. The process keeps its id, and no client is
turned away meanwhile. If the configuration is wrong or the program doesn't run, that is logged,
and the server goes on as it was.`,
		Example: `  toolsrv openapi --config toolsrv.toml
  toolsrv openapi --auth-tokens-file /run/secrets/tokens --address :8080`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := noArguments(cmd, args); err != nil {
				return fmt.Errorf("%w; toolsrv up serves a folder or files", err)
			}
			return nil
		},
		RunE: o.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "", "configuration `file` (TOML)")
	flags.StringVar(&o.address, "address", "", "`host:port` to listen on, or unix:PATH; port 0 takes any free one")
	flags.StringArrayVar(&o.tokens, "auth-token", nil,
		"a bearer `token` that clients may use; may be given more than once; other users of the machine can see it: a file is safer")
	flags.StringVar(&o.tokensFile, "auth-tokens-file", "",
		"`file` with one bearer token per line; tokens from flags replace those in the configuration")
	addLevelFlag(cmd, &o.logLevel, "to log")
	completeFlag(cmd, "config", cobra.FixedCompletions([]cobra.Completion{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "address", cobra.NoFileCompletions)
	completeFlag(cmd, "auth-token", cobra.NoFileCompletions)
	return cmd
}

func (o *openAPI) run(cmd *cobra.Command, _ []string) error {
	// Signals are caught from the first moment, so that none is lost while the server starts.
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	hangup := make(chan os.Signal, 1) // full: another reload is due anyway
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	restart := make(chan os.Signal, 1)
	notifyRestart(restart)
	defer signal.Stop(restart)

	o.program = ownPath()
	if err := o.check(cmd); err != nil {
		return &usageError{err}
	}
	stderr := cmd.ErrOrStderr()
	log, handler := journal.New(stderr, encoder(stderr, o.logLevel))
	defer log.Close() // also after a panic, and if a second signal leaves the server running
	logger := slog.New(handler)
	var err error
	if o.supervisor, err = supervisor.Find(logger); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	done := make(chan error, 1)
	var next *successor // valid after done is closed
	go func() {
		defer log.Flush()
		var err error
		next, err = o.serve(ctx, logger, hangup, restart)
		done <- err
	}()
	select {
	case err := <-done:
		if next == nil || err != nil {
			return err
		}
		defer next.close()
		if len(stop) > 0 { // the process should stop, not be replaced
			return nil
		}
		log.Close()
		return replace(next, o.supervisor.Environ())
	case s := <-stop:
		logger.Info("stopping", "signal", s.String())
		o.supervisor.Stopping(stopTime)
		cancel()
	}
	for stopping := time.Now(); ; {
		select {
		case err := <-done:
			return err
		case s := <-stop:
			if time.Since(stopping) > signalEcho {
				return fmt.Errorf("stopped at once by a second signal (%s)", s)
			}
		}
	}
}

// stopTime is how long a stop may take until the last calls are cut off and everything is closed.
const stopTime = 45 * time.Second

// signalEcho is how soon after a signal a second one still counts as the same signal: timeout(1) and others send a signal to a process, and then to
// its group.
const signalEcho = 500 * time.Millisecond

// check refuses flags that were given without a value: an unset variable in a script must not switch auth off.
func (o *openAPI) check(cmd *cobra.Command) error {
	for _, name := range []string{"config", "address", "auth-tokens-file"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return fmt.Errorf("--%s is empty: give it a value or leave it out", name)
		}
	}
	for _, token := range o.tokens {
		if token == "" {
			return errors.New("--auth-token is empty: give it a value or leave it out")
		}
	}
	return nil
}

// serve runs the server until ctx ends. It reloads the configuration at each value of hangup. At a value of restart, it ends by starting the next
// program.
func (o *openAPI) serve(ctx context.Context, logger *slog.Logger, hangup, restart <-chan os.Signal) (*successor, error) {
	listeners, addresses, err := inherited()
	if err != nil {
		return nil, err
	}
	before := len(listeners) > 0 // clients may be waiting, since another process has served them until now
	if !before {
		listeners = o.supervisor.Listeners
	}
	o.activated = len(listeners) > 0 && len(addresses) == 0
	if o.config == "" {
		// This is decided only once: if the file vanishes later, a reload fails rather than going back to the defaults.
		if _, err := os.Stat(defaultConfig); err == nil {
			o.config = defaultConfig
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	switch {
	case o.activated:
		logger.Info("the supervisor has opened the listeners, so server.address is ignored", "listeners", len(listeners))
	case before && !slices.Equal(c.Server.Addresses, addresses):
		logger.Info("listening at other addresses", "before", addresses, "now", c.Server.Addresses)
		if listeners, err = listenAnew(ctx, listeners, addresses, c.Server.Addresses); err != nil {
			return nil, err
		}
	}
	if before {
		c.Server.Listeners = listeners
	}
	if o.config == "" {
		logger.Info("no configuration file: using the defaults", "looked_for", defaultConfig, "directory", c.Tools.Directory)
	} else {
		logger.Info("configuration read", "file", o.config, "directory", strings.Join(placesOf(c), ", "))
	}
	go heap.Keep(ctx, core.MemoryOf(c).Heap) // it ends with the command
	tools, s, err := openServer(ctx, c, server.Options{Listeners: listeners, Awaited: len(listeners) > 0, Load: o.loadPublic}, core.Options{Logger: logger})
	if ctx.Err() != nil && err != nil {
		return nil, nil // stopped before the server had started
	}
	if err != nil {
		return nil, err
	}

	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var next *successor // valid when signals is closed
	ended, signals := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(signals)
		for { // also during the drain: a client whose token is revoked then must be refused
			select {
			case <-hangup:
				if err := o.supervisor.Reload(func() error { return o.reload(s) }); err != nil {
					logger.Error("the configuration stays as it was", "error", err)
				}
			case <-restart:
				if running.Err() != nil {
					continue // it is ending
				}
				logger.Info("restarting")
				n, err := o.succeed(running, s, c)
				if err != nil {
					logger.Error("the server goes on as it was", "error", err)
					continue
				}
				next = n
				o.supervisor.Restarting()
				cancel()
			case <-ended:
				return
			}
		}
	}()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	var told sync.WaitGroup
	told.Go(func() { o.supervisor.Watch(watching, s.Answers) }) // also during the drain
	told.Go(func() {
		if tools.Catalog.Wait(running) == nil {
			o.supervisor.Ready()
		}
	})
	err = errors.Join(s.Run(running), tools.Close())
	close(ended)
	<-signals
	cancel()
	stopWatching()
	told.Wait()
	if next != nil && ctx.Err() != nil {
		next.close()
		next = nil
	}
	if next != nil && err != nil { // such as a state store that failed, which a restart should mend
		logger.Error("the server did not shut down cleanly, and is restarted anyway", "error", err)
		err = nil
	}
	return next, err
}

// openServer opens the service of a configuration, and a server with these listeners. If there are none, it first listens at the configured
// addresses, since that is the cheapest step that can fail.
func openServer(ctx context.Context, c *config.Config, with server.Options, o core.Options) (*core.Service, *server.Server, error) {
	if len(with.Listeners) == 0 {
		var err error
		if with.Listeners, err = listen.All(ctx, c.Server.Addresses); err != nil {
			return nil, nil, err
		}
	}
	tools, err := core.Open(ctx, c, o)
	if err != nil {
		return nil, nil, errors.Join(err, listen.Close(with.Listeners))
	}
	s, err := server.New(ctx, (*service.Service)(tools.Handle()), with)
	if err != nil {
		return nil, nil, errors.Join(err, tools.Close())
	}
	return tools, s, nil
}

func (o *openAPI) reload(s *server.Server) error {
	c, err := o.loadPublic()
	if err != nil {
		s.ReloadFailed(err)
		return err
	}
	return s.Reload(c)
}

// loadPublic is loadSoon, but returns the configuration as the exported type.
func (o *openAPI) loadPublic() (*public.Config, error) {
	c, err := config.Opaque(o.loadSoon())
	return (*public.Config)(c), err
}

// loadTime is how long reading a configuration may take while a server runs.
const loadTime = 10 * time.Second

// loadSoon is load with a time limit: it does not wait forever for the other end of a pipe, or for a file server that is away.
func (o *openAPI) loadSoon() (*config.Config, error) {
	type loaded struct {
		c   *config.Config
		err error
	}
	done := make(chan loaded, 1)
	go func() { // this goroutine is left behind if it hangs
		c, err := o.load()
		done <- loaded{c, err}
	}()
	select {
	case l := <-done:
		return l.c, l.err
	case <-time.After(loadTime):
		return nil, fmt.Errorf("read the configuration: it took longer than %s: check that its files are regular files, on a disk that responds", loadTime)
	}
}

// load reads the configuration, and overrides it with the flags.
func (o *openAPI) load() (*config.Config, error) {
	c := config.Default()
	if o.config != "" {
		var err error
		if c, err = loadConfig(o.config); err != nil {
			return nil, err
		}
	}
	implyState(c, ".") // if there is no file
	if o.address != "" {
		c.Server.Addresses = []string{o.address}
	}
	if len(o.tokens) > 0 || o.tokensFile != "" {
		tokens := o.tokens
		if o.tokensFile != "" {
			read, err := credential.ReadFile(o.tokensFile)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens[:len(tokens):len(tokens)], read...)
		}
		c.Auth.Tokens, c.Auth.TokensFile = tokens, o.tokensFile
	}
	return c, nil
}
