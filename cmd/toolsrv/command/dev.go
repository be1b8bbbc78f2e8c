package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/internal/wholefile"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// lookInterval is how often `toolsrv dev` looks for changed sources: far less than a build takes.
const lookInterval = 100 * time.Millisecond

// devPort is where `toolsrv dev` serves unless --address says otherwise.
const devPort = 8000

func devAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// dev holds the flags of `toolsrv dev`.
type dev struct {
	address  string
	anyPort  bool // address is the default, not the user's choice
	logLevel slog.Level
	with     []string
	grants   grantFlags
}

func newDev() *cobra.Command {
	d := dev{logLevel: slog.LevelDebug}
	cmd := &cobra.Command{
		Use:   "dev [DIR | SCRIPT]",
		Short: "Build and serve the tool in a folder, or a script, and again at every change",
		Long: `Build the tool in DIR (by default the current folder) or the tool SCRIPT, and serve it. Whenever a
source changes, build and serve it again. If a build fails, the compiler's messages are shown, and
the last version that was built stays in service. Press Ctrl-C to end.

It serves without tokens, and only on this machine unless --address says otherwise. Without
--address it uses one of the next ports if 8000 is taken.`,
		Example: `  toolsrv dev greet
  toolsrv dev weather --allow-http https://api.example.com
  toolsrv dev hello.py`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.address == "" {
				return &usageError{errors.New("--address is empty: give it a value or leave it out")}
			}
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			d.anyPort = !cmd.Flags().Changed("address")
			return d.run(ctx, folderOf(args), cmd)
		},
		ValidArgsFunction: completeSource,
	}
	flags := cmd.Flags()
	flags.StringVar(&d.address, "address", devAddress(devPort), "`host:port` to listen on; port 0 takes any free one")
	addLevelFlag(cmd, &d.logLevel, "that is logged")
	addWithFlag(cmd, &d.with)
	d.grants.add(cmd)
	completeFlag(cmd, "address", cobra.NoFileCompletions)
	return cmd
}

// run serves a temporary directory, into which the builds go, until ctx ends.
func (d *dev) run(ctx context.Context, dir string, cmd *cobra.Command) error {
	p, err := d.open(dir)
	if err != nil { // this is checked first, since no server should start for a wrong folder
		return err
	}
	temp, err := os.MkdirTemp("", "toolsrv-dev-")
	if err != nil {
		return fmt.Errorf("make a folder for the builds: %w", err)
	}
	defer os.RemoveAll(temp)
	c := config.Default()
	c.Server.Addresses = []string{d.address}
	c.Tools.Directory = filepath.Join(temp, "tools")
	// The machine's shared cache holds code that servers need, which short-lived builds would push out. Scripts share their code.
	if p.Script == "" {
		c.Tools.CacheDir = filepath.Join(temp, "cache")
	}
	if err := d.grants.apply(c); err != nil {
		return err
	}
	if c.State.Directory == "" {
		c.State.Directory = filepath.Join(temp, "state")
	}
	if err := os.Mkdir(c.Tools.Directory, 0o700); err != nil {
		return fmt.Errorf("make a folder for the builds: %w", err)
	}
	logger := newAuthorLogger(cmd.ErrOrStderr(), d.logLevel)
	b := d.newBuilder(dir, c.Tools.Directory, cmd.ErrOrStderr(), logger)
	// The first build ends before the server starts: tests that wait until the server listens, or is ready, rely on finding the tool.
	if more, err := b.next(ctx); !more {
		return err
	}
	tools, s, err := listenNear(ctx, c, server.Options{}, core.Options{Logger: logger}, d.anyPort)
	if err != nil {
		return err
	}
	if c.Server.Addresses[0] != d.address {
		logger.Warn("another program listens on "+d.address+": serving on another port", "address", s.Addr().String())
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	var beside sync.WaitGroup
	go func() {
		defer cancel() // nobody uses builds any more
		served <- errors.Join(s.Run(ctx), tools.Close())
	}()
	beside.Go(func() { d.tell(ctx, s, cmd.ErrOrStderr()) })
	beside.Go(func() { tellCompiling(ctx, compiles(tools), cmd.ErrOrStderr()) })
	for more := true; more; {
		more, err = b.next(ctx)
	}
	cancel()
	beside.Wait()
	return errors.Join(err, <-served)
}

// open opens the project at a path.
func (d *dev) open(path string) (*project.Project, error) {
	p, err := project.Open(path)
	if err != nil {
		return nil, err
	}
	if err := p.SetWith(d.with); err != nil {
		return nil, &usageError{err}
	}
	return p, nil
}

// listenNear opens a server at the address of a configuration. If another program listens there and anyPort is true, it uses one of the next ports;
// the server knows its real address.
func listenNear(ctx context.Context, c *config.Config, with server.Options, o core.Options, anyPort bool) (*core.Service, *server.Server, error) {
	tools, s, err := openServer(ctx, c, with, o)
	for _, port := range []int{devPort + 1, devPort + 2, devPort + 3, devPort + 4, 0} { // 0 means any free port
		if !anyPort || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		c.Server.Addresses = []string{devAddress(port)}
		tools, s, err = openServer(ctx, c, with, o)
	}
	return tools, s, err
}

// tell prints how to call the tools, again after each change, until ctx ends.
func (d *dev) tell(ctx context.Context, s *server.Server, w io.Writer) {
	changed := make(chan struct{}, 1) // the channel is full, so one more look is due anyway
	defer s.Table().Subscribe(func(*wasmtools.Generation) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for told, blamed, lacked := "", "", ""; ; {
		current := s.Table().Current()
		var without strings.Builder
		for _, route := range current.Routes() {
			if route.Ungranted {
				fmt.Fprintf(&without, "\n%s is not served, because it needs %s:\n", route.Path, oneLine(lacking.Of(route.Tool)))
				tellMissing(&without, route.Tool)
			}
		}
		if without.String() != lacked {
			lacked = without.String()
			fmt.Fprint(w, lacked)
		}
		blame := ""
		for _, refused := range current.Refused() {
			if script, ok := errors.AsType[*toolfile.ScriptError](refused.Err); ok {
				blame = text.Escape(script.Text)
			}
		}
		if blame != blamed && blame != "" { // the log has the rest in one line
			fmt.Fprintf(w, "\n%s\n\n", blame)
		}
		blamed = blame
		var commands strings.Builder
		for _, route := range current.Routes() {
			if !route.Enabled {
				continue
			}
			fmt.Fprintf(&commands, "  %s\n", callLine(callAddress(s.Addr()), route.Tool, false))
		}
		if commands.Len() > 0 && commands.String() != told {
			told = commands.String()
			fmt.Fprintf(w, "\nServed. Try in another terminal:\n\n%s\n", told)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// A builder builds a project into the folder tools after every change.
type builder struct {
	*dev

	dir, tools string
	stderr     io.Writer
	logger     *slog.Logger
	sources    *project.Watcher
	served     []byte // the module of the last successful build; nil if there was none
	failed     bool   // the last build failed
}

func (d *dev) newBuilder(dir, tools string, stderr io.Writer, logger *slog.Logger) *builder {
	logger.Info("building", "folder", dir)
	return &builder{dev: d, dir: dir, tools: tools, stderr: stderr, logger: logger, sources: project.Watch(dir, lookInterval), failed: true}
}

// next builds the project: at its first call at once, and later when a source has changed. It returns false if ctx has ended or nothing more can be
// built. A build that makes the same module as before prints nothing: the changed file was not a source, and may even be one that our output goes to.
func (b *builder) next(ctx context.Context) (more bool, err error) {
	switch err := b.sources.Wait(ctx); {
	case ctx.Err() != nil:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for changed sources: %w", err)
	}
	start := time.Now()
	module, inputs, err := b.compile(ctx, b.dir, b.stderr)
	if followed := b.sources.Follow(inputs); err == nil {
		err = followed
	}
	same := bytes.Equal(module, b.served)
	if err == nil && !same {
		err = wholefile.Write(filepath.Join(b.tools, "tool.wasm"), module)
	}
	if script, ok := errors.AsType[*script.Error](err); ok {
		fmt.Fprintf(b.stderr, "\n%s\n\n", text.Escape(script.Error()))
		err = errScript
	}
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err != nil && b.served == nil:
		b.logger.Error("not built: nothing is served yet", "error", err)
	case err != nil:
		b.logger.Error("not built: the last version that was built stays in service", "error", err)
		b.failed = true
	case b.failed || !same:
		b.logger.Info("built", "took", time.Since(start).Round(time.Millisecond).String(), "size", text.RoundSize(len(module)))
		b.served, b.failed = module, false
	}
	return true, nil
}

// errScript stands for an error that has been shown already.
var errScript = errors.New("the script has the error above")

// compile compiles the project, and returns the files that a script depends on. The server asks the module for its manifest, so that it
// is compiled to machine code only once. The project is opened again, since its language may have changed.
func (d *dev) compile(ctx context.Context, dir string, stderr io.Writer) (module []byte, inputs []string, err error) {
	p, err := d.open(dir)
	if err != nil {
		return nil, nil, err
	}
	module, err = p.Compile(ctx, stderr)
	return module, p.Inputs, err
}
