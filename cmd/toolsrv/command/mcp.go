package command

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/heap"
	"github.com/toolsrv/toolsrv/internal/journal"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// startTime is how long a start takes at most. By then, the tools are listed, and their code has been read from a warm cache.
const startTime = 5 * time.Second

// mcp holds the flags of `toolsrv mcp`.
type mcp struct {
	config   string
	scripts  bool
	logLevel slog.Level
	grants   grantFlags

	client string // the client whose settings are printed
	name   string
	url    string
}

func newMCP() *cobra.Command {
	m := mcp{logLevel: slog.LevelWarn, scripts: true}
	cmd := &cobra.Command{
		Use:   "mcp [DIRECTORY | FILE... | --config FILE]",
		Short: "Serve tools to an agent over MCP on standard input and output",
		Long: `Serve tools over the Model Context Protocol (MCP) to the one program that starts this command,
over standard input and output. Standard output carries only protocol messages. Warnings and
errors go to standard error; --log-level info logs every call, too.

The tools come from DIRECTORY, from single .wasm files and scripts, or from a server's
configuration, whose limits and switches then apply. Without any of these, the command reads
./toolsrv.toml if it exists, and otherwise serves ./tools. It serves the scripts of a directory,
too, unless you pass --scripts=false; with a configuration, tools.scripts decides. It picks up
changed files while it runs.

The command ends with exit code 0 when standard input is closed, or after SIGINT, SIGTERM
or SIGHUP.

--print-config prints what goes into a client's settings, and exits. With --url, that is for a
server listening at that address, such as toolsrv openapi.`,
		Example: `  toolsrv mcp tools
  toolsrv mcp math.wasm --print-config claude-code
  toolsrv mcp --print-config vscode --url https://tools.example.com/mcp`,
		Args: func(_ *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return errors.New("the name of a file is empty: name a directory or .wasm files")
			}
			return nil
		},
		RunE:              m.run,
		ValidArgsFunction: completeFiles,
	}
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&m.config), "config", "configuration `file` of a server, whose tools directory, limits, grants and switches apply")
	flags.BoolVar(&m.scripts, "scripts", true, "serve the directory's scripts, too; with --config, tools.scripts is the default")
	flags.StringVar(&m.client, "print-config", "", "print the settings of a `client` and end: "+strings.Join(clientNames(), ", "))
	flags.StringVar(&m.name, "name", "toolsrv", "`name` that the client shows, for --print-config")
	flags.StringVar(&m.url, "url", "", "`address` of a server that the client reaches over HTTP, for --print-config")
	addLevelFlag(cmd, &m.logLevel, "to log")
	m.grants.add(cmd)
	completeFlag(cmd, "config", cobra.FixedCompletions([]cobra.Completion{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "print-config", cobra.FixedCompletions(clientNames(), cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "name", cobra.NoFileCompletions)
	completeFlag(cmd, "url", cobra.NoFileCompletions)
	return cmd
}

func (m *mcp) run(cmd *cobra.Command, args []string) error {
	if m.config != "" && len(args) > 0 {
		return &usageError{errors.New("--config serves the files of its directory: leave out --config, or the files")}
	}
	if cmd.Flags().Changed("print-config") {
		return m.printSettings(cmd, args)
	}
	for _, name := range []string{"name", "url"} {
		if cmd.Flags().Changed(name) {
			return &usageError{fmt.Errorf("--%s is for --print-config: add that, or leave it out", name)}
		}
	}
	return m.serve(cmd, args)
}

// serve serves until standard input is closed, or a signal comes.
func (m *mcp) serve(cmd *cobra.Command, args []string) error {
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	// If a client no longer reads the log, SIGPIPE must not end its server. If the client is gone, a write to standard output fails, and that ends
	// the server.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	stderr := cmd.ErrOrStderr()
	log, handler := journal.New(stderr, encoder(stderr, m.logLevel))
	defer log.Close()
	logger := slog.New(handler)
	c, files, err := m.load(cmd, args)
	if err != nil {
		return err
	}
	if in, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(in) {
		fmt.Fprintln(stderr, "This command speaks MCP with the program that starts it, on standard input and output. "+
			"--print-config prints what goes into the settings of one. Press Ctrl-D to end.")
	}
	go heap.Release(ctx, startTime) // it ends when the command does
	tools, err := core.Open(ctx, c, core.Options{Files: files, Logger: logger})
	if ctx.Err() != nil && err != nil {
		return nil // it was stopped before it had begun
	}
	if err != nil {
		return err
	}
	return errors.Join(server.ServeStdio(ctx, (*service.Service)(tools.Handle()), server.StdioOptions{In: cmd.InOrStdin(), Out: cmd.OutOrStdout()}), tools.Close())
}

// load returns the configuration, and the files to serve instead of its directory.
func (m *mcp) load(cmd *cobra.Command, args []string) (c *config.Config, files []string, err error) {
	if m.config == "" && len(args) == 0 {
		if _, err := os.Stat(defaultConfig); err == nil {
			m.config = defaultConfig
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	c = config.Default()
	if m.config != "" {
		c, err = loadConfig(m.config)
	} else {
		err = setHelper(c)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := m.grants.apply(c); err != nil {
		return nil, nil, err
	}
	if given := cmd.Flags().Changed("scripts"); given || m.config == "" {
		c.Tools.Scripts = m.scripts
		for i := range c.Sources {
			c.Sources[i].Scripts = m.scripts
		}
	}
	directories := 0
	for _, name := range args {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("there is no file or directory %s", name)
		} else if err != nil {
			return nil, nil, err
		}
		if info.IsDir() {
			directories++
		}
	}
	switch {
	case len(args) == 0:
		return c, nil, nil
	case directories == 0 && cmd.Flags().Changed("scripts"):
		return nil, nil, &usageError{errors.New("--scripts is for a directory: files that are named are always served")}
	case directories == 0:
		return c, args, nil
	case len(args) > 1:
		return nil, nil, &usageError{errors.New("name one directory, or files: put several directories into one, and name that")}
	}
	c.Tools.Directory = args[0]
	return c, nil, nil
}

// printSettings prints the settings for a client.
func (m *mcp) printSettings(cmd *cobra.Command, args []string) error {
	all := clients()
	i := slices.IndexFunc(all, func(c agent) bool { return c.name == m.client })
	if i < 0 {
		message := fmt.Sprintf("unknown client %q for --print-config", m.client)
		if near := text.Nearest(m.client, clientNames()); near != "" {
			return &usageError{fmt.Errorf("%s: did you mean %s?", message, near)}
		}
		return &usageError{fmt.Errorf("%s: the clients are %s; others take the settings of one of these", message, strings.Join(clientNames(), ", "))}
	}
	client := &all[i]
	if err := checkServerName(m.name); err != nil {
		return &usageError{fmt.Errorf("--name: %w", err)}
	}
	var e entry
	if cmd.Flags().Changed("url") {
		for _, name := range []string{"scripts", "log-level", "grant", "allow-http", "secret"} {
			if cmd.Flags().Changed(name) {
				return &usageError{fmt.Errorf("--url is for a server that is already running, with its own configuration: leave out --%s, or --url", name)}
			}
		}
		switch address, err := serverAddress(m.url); {
		case err != nil:
			return &usageError{fmt.Errorf("--url: %w", err)}
		case m.config != "" || len(args) > 0:
			return &usageError{errors.New("--url is for a server that is already running: leave out the files and --config, or --url")}
		case client.address == nil:
			return &usageError{fmt.Errorf("--url: the settings of %s can't hold an address: leave out --url, or add the address as a connector in the application", client.title)}
		default:
			e = client.address(address)
		}
	} else {
		argv, err := m.argv(cmd, args)
		if err != nil {
			return err
		}
		e = client.command(argv)
	}
	settings, err := client.settings(m.name, e)
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	fmt.Fprintf(stderr, "For %s. Put it into %s.\n", client.title, client.file)
	if m.url != "" {
		fmt.Fprintf(stderr, "The token: %s. Leave it out if the server needs no token.\n", client.token)
	}
	return writeJSON(cmd.OutOrStdout(), settings)
}

// argv returns a command that serves the same tools, whatever folder it is started in.
func (m *mcp) argv(cmd *cobra.Command, args []string) ([]string, error) {
	c, files, err := m.load(cmd, args) // checked now, since a client shows little of what goes wrong when it starts a server
	if err != nil {
		return nil, err
	}
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("find the path of toolsrv: %w", err)
	}
	argv := []string{self, "mcp"}
	paths := files
	switch {
	case m.config != "":
		argv, paths = append(argv, "--config"), []string{m.config}
	case files == nil:
		paths = []string{c.Tools.Directory} // without a configuration, the default is the only one
	}
	if len(files) == 0 {
		if err := core.CheckSources(c); err != nil {
			return nil, err
		}
	}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		argv = append(argv, absolute)
	}
	if cmd.Flags().Changed("scripts") {
		argv = append(argv, fmt.Sprintf("--scripts=%t", m.scripts))
	}
	granted, err := m.grants.argv()
	if err != nil {
		return nil, err
	}
	argv = append(argv, granted...)
	if cmd.Flags().Changed("log-level") {
		argv = append(argv, "--log-level", strings.ToLower(m.logLevel.String()))
	}
	return argv, nil
}

// executable returns the path of this program. If the entry in PATH leads to this program, it returns the path of that entry, which stays valid
// after an update.
func executable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath(filepath.Base(self))
	if err != nil {
		return self, nil
	}
	if found, err = filepath.Abs(found); err != nil {
		return self, nil
	}
	a, errA := os.Stat(self)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found, nil
	}
	return self, nil
}
