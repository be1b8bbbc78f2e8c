package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/heap"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/text"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// listTime is how long to wait for the complete list of tools before a part of it is printed.
const listTime = 2 * time.Second

// readInterval is how often `toolsrv up` checks whether its configuration has changed.
const readInterval = 500 * time.Millisecond

// up holds the flags of `toolsrv up`.
type up struct {
	address  string
	logLevel slog.Level
	grants   grantFlags
}

func newUp() *cobra.Command {
	u := up{logLevel: slog.LevelWarn}
	cmd := &cobra.Command{
		Use:   "up [DIR | FILE...]",
		Short: "Serve the tools in a folder, and say how to call them",
		Long: `Serve the scripts and .wasm files in DIR (by default the current folder), or the named files. It
needs no configuration. It prints the addresses, and a command that calls each tool. It picks up
new, changed and removed files while it runs. Press Ctrl-C to end.

If DIR has a toolsrv.toml, that file says what is served, where and to whom, and is read again
when it changes. Otherwise, if DIR has a folder tools, that is served. It serves without tokens
then, and only on this machine unless --address says otherwise. Unless an address was asked for,
it uses one of the next ports if 8000 is taken.`,
		Example: `  toolsrv up
  toolsrv up weather --allow-http https://api.example.com
  toolsrv up hello.py math.wasm`,
		Args: func(_ *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return errors.New("the name of a folder or file is empty: name one, or leave it out for this folder")
			}
			return nil
		},
		RunE:              u.run,
		ValidArgsFunction: completeFiles,
	}
	flags := cmd.Flags()
	flags.StringVar(&u.address, "address", "", "`host:port` to listen on; port 0 takes any free one (default "+devAddress(devPort)+")")
	addLevelFlag(cmd, &u.logLevel, "that is logged")
	u.grants.add(cmd)
	completeFlag(cmd, "address", cobra.NoFileCompletions)
	return cmd
}

func (u *up) run(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("address") && u.address == "" {
		return &usageError{errors.New("--address is empty: give it a value or leave it out")}
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	p, err := findPlace(args)
	if err != nil {
		return err
	}
	c, err := u.load(p)
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	logger := slog.New(untold{newAuthorLogger(stderr, u.logLevel).Handler()})
	go heap.Keep(ctx, core.MemoryOf(c).Heap) // it ends when the command does
	wanted := c.Server.Addresses
	var with server.Options
	if p.config != "" {
		with.Load = func() (*public.Config, error) {
			next, err := u.load(p)
			if err == nil && slices.Equal(next.Server.Addresses, wanted) {
				next.Server.Addresses = c.Server.Addresses // these may differ from the configured ones
			}
			c, err := config.Opaque(next, err)
			return (*public.Config)(c), err
		}
	}
	o := core.Options{Files: p.files, Volatile: p.config == "", Logger: logger}
	tools, s, err := listenNear(ctx, c, with, o, u.address == "" && slices.Equal(wanted, []string{devAddress(devPort)}))
	if ctx.Err() != nil && err != nil {
		return nil // it was stopped before it had begun
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beside sync.WaitGroup
	beside.Go(func() {
		tellPlace(stderr, p, c)
		if !slices.Equal(c.Server.Addresses, wanted) {
			fmt.Fprintf(stderr, "Another program is listening on %s, so toolsrv uses another port.\n", wanted[0])
		}
		tellAddresses(stderr, c, s)
		u.announce(ctx, p, c, tools, s, stderr)
	})
	beside.Go(func() { tellCompiling(ctx, compiles(tools), stderr) })
	if p.config != "" {
		beside.Go(func() { u.reload(ctx, p.config, with.Load, s, stderr) })
	}
	err = errors.Join(s.Run(ctx), tools.Close())
	cancel()
	beside.Wait()
	return err
}

// announce prints which tools there are, and what changes, until ctx ends.
func (u *up) announce(ctx context.Context, p place, c *config.Config, tools *core.Service, s *server.Server, stderr io.Writer) {
	soon, cancel := context.WithTimeout(ctx, listTime)
	_ = tools.Catalog.Wait(soon) // tools that are read later are printed then
	cancel()
	a := announcer{w: stderr, style: styleOf(stderr), server: callServer(c, s.Addr()), needsToken: needsToken(c), empty: emptyAdvice(p, c)}
	a.loading = func() (files []string) {
		for _, l := range tools.Catalog.State().Loading {
			files = append(files, nearby(l.Source))
		}
		return files
	}
	a.follow(ctx, s.Table())
}

// load returns the configuration for a place, overridden by the flags.
func (u *up) load(p place) (*config.Config, error) {
	c := config.Default()
	var err error
	if p.config != "" {
		c, err = loadConfig(p.config)
	} else {
		c.Tools.Directory, c.Tools.Scripts = p.folder, true
		err = setHelper(c)
	}
	if err != nil {
		return nil, err
	}
	if u.address != "" {
		c.Server.Addresses = []string{u.address}
	}
	return c, u.grants.apply(c)
}

// reload reads a configuration again each time that its file has changed, until ctx ends.
func (u *up) reload(ctx context.Context, file string, load func() (*public.Config, error), s *server.Server, stderr io.Writer) {
	ticker := time.NewTicker(readInterval)
	defer ticker.Stop()
	before, _ := os.Stat(file)
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now, err := os.Stat(file)
		if err != nil || !now.Mode().IsRegular() || before != nil && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size() {
			continue // a missing file may be about to come back
		}
		before = now
		c, err := load()
		if err == nil {
			err = s.Reload(c)
		} else {
			s.ReloadFailed(err)
		}
		if err != nil {
			fmt.Fprintf(stderr, "\n%s\nThe configuration stays as it was.\n", text.Escape(err.Error()))
			continue
		}
		fmt.Fprintf(stderr, "\nReloaded %s.\n", oneLine(nearby(file)))
	}
}

// needsToken reports whether a call needs a token, or a certificate.
func needsToken(c *config.Config) bool { return !configured.Open(c) }

// tellPlace prints what is served, and which files nearby are not.
func tellPlace(w io.Writer, p place, c *config.Config) {
	var directories []string
	for _, source := range configured.Sources(c) {
		directories = append(directories, nearby(configured.Place(source)))
	}
	who := "without tokens"
	if needsToken(c) {
		who = "to callers with credentials"
	}
	switch { // one write for the whole line, since the log may write to w, too
	case p.files != nil:
		fmt.Fprintf(w, "Serving %s, %s.\n", few(p.files), who)
	case p.config != "":
		fmt.Fprintf(w, "Serving %s, as %s says, %s.\n", few(directories), oneLine(p.config), who)
	default:
		fmt.Fprintf(w, "Serving the folder %s, %s.\n", few(directories), who)
	}
	if p.dir == "" || slices.ContainsFunc(configured.Sources(c), func(s config.Source) bool { return sameFile(s.Directory, p.dir) }) {
		return
	}
	if beside, _ := toolFiles(p.dir); len(beside) > 0 {
		fmt.Fprintf(w, "Not served, because it is outside that folder: %s.\n", few(beside))
	}
}

// nearby returns a path relative to the current folder, if it is inside that folder.
func nearby(path string) string {
	if strings.HasPrefix(path, oci.Scheme) {
		return path
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(here, absolute); err == nil && filepath.IsLocal(relative) && relative != "." {
		return relative
	}
	return absolute
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	fileA, errA := os.Stat(a)
	fileB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fileA, fileB)
}

// tellAddresses prints where programs, agents and people find the tools.
func tellAddresses(w io.Writer, c *config.Config, s *server.Server) {
	base, over := "http://"+callAddress(s.Addr()), ""
	switch {
	case s.Addr().Network() == "unix":
		base, over = "http://localhost", "  over the socket "+oneLine(s.Addr().String())
	case c.Server.TLS.Certificate != "":
		base = "https://" + callAddress(s.Addr())
	}
	var rows [][2]string
	if c.Console.Enabled && over == "" {
		rows = append(rows, [2]string{"pages", base})
	}
	rows = append(rows, [2]string{"REST", base + "/openapi.json"}, [2]string{"list", base + "/tools"})
	if c.MCP.Enabled {
		rows = append(rows, [2]string{"MCP", base + "/mcp"})
	}
	fmt.Fprintln(w)
	for _, row := range rows {
		fmt.Fprintf(w, "  %-6s%s%s\n", row[0], row[1], over)
	}
}

// emptyAdvice returns what to do while there is no tool.
func emptyAdvice(p place, c *config.Config) string {
	if p.files != nil {
		return "No tool is served yet: correct the files first."
	}
	sources := slices.DeleteFunc(configured.Sources(c), func(s config.Source) bool { return s.Directory == "" })
	if len(sources) == 0 && slices.ContainsFunc(c.Sources, func(s config.Source) bool { return s.Bucket != "" }) {
		return "No tool is served yet: toolsrv put FILE puts one into the bucket, if [admin] upload = true."
	}
	if len(sources) == 0 {
		return "No tool is served yet: toolsrv refused says what is wrong with the registries."
	}
	advice := fmt.Sprintf("No tool is served yet. Put a script (.py, .js, .ts) or a .wasm file into %s: it is served within a second.", few([]string{nearby(sources[0].Directory)}))
	if !sources[0].Scripts {
		advice = fmt.Sprintf("No tool is served yet. Put a .wasm file into %s: it is served within a second. For scripts set tools.scripts = true.", few([]string{nearby(sources[0].Directory)}))
	}
	if found, err := project.Open(p.dir); err == nil && found.Script == "" {
		advice += "\nThis is the source of a tool in " + string(found.Language) + ": toolsrv dev " + text.ShellQuote(p.dir) + " builds and serves it."
	}
	return advice
}

// untold drops the log lines for which `toolsrv up` prints messages of its own.
type untold struct{ slog.Handler }

// toldOtherwise are the messages of those lines.
func toldOtherwise(message string) bool {
	switch message {
	case "file refused",
		"not waiting for files that are slow to read or describe, or that keep changing: embed manifests with `toolsrv pack`",
		"a tool lacks a grant and can't be called: see `toolsrv inspect` for the [[grant]]",
		"auth is off: anybody who can reach the address may call every tool; set auth.tokens, or auth.required to refuse instead":
		return true
	}
	return false
}

func (u untold) Handle(ctx context.Context, r slog.Record) error {
	if toldOtherwise(r.Message) {
		return nil
	}
	return u.Handler.Handle(ctx, r)
}

func (u untold) WithAttrs(attrs []slog.Attr) slog.Handler { return untold{u.Handler.WithAttrs(attrs)} }

func (u untold) WithGroup(name string) slog.Handler { return untold{u.Handler.WithGroup(name)} }
