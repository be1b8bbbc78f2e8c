package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// check holds the flags of `toolsrv check`.
type check struct {
	config string
	strict bool
	asJSON bool
	models bool
	with   []string
}

func newCheck() *cobra.Command {
	var c check
	cmd := &cobra.Command{
		Use:   "check {FILE... | --config FILE}",
		Short: "Check files as a server would, and for what causes clients trouble",
		Long: `Find every reason for which a server would refuse a file: a module that can't be loaded
or compiled, imports that are not offered, a wrong manifest or schema, a path or
operation id that another file or the service itself has, and a memory limit that is too
low to start with. With --config, the files are those of the configured directory, with
its limits and namespaces.

A file that a server takes may still trouble clients. The warnings are:
  dynamic-ref   $dynamicRef and $recursiveRef, which many clients do not know
  ref-sibling   members beside $ref, which some clients refuse or ignore
  ref-pointer   a $ref that is not a JSON pointer (#/…): clients follow nothing else
  root-object   arguments without "type": "object", or with $ref, allOf, anyOf or oneOf at
                the top, where some clients look for members
  name          a member's name of more than 64 characters, or with others than
                A-Z a-z 0-9 _ . -, which language models do not accept
  keyword       a keyword of JSON Schema that is misspelt, and therefore ignored
  format        a format that is misspelt, and therefore not checked
  media         a contentMediaType that is none, a picture or sound without
                "contentEncoding": "base64", any other contentEncoding
  example       an example that does not fit the schema of arguments or result: agents
                call tools as examples show it
  mcp           what agents are not shown over MCP, or not as it is written
  tool-name     a name, with its namespace, that begins with neither a letter nor _, which
                Gemini refuses, or has more than 50 characters, which leaves too little
                for the server's name
  description   a description of more than 1024 characters, which OpenAI refuses
  array-items   an array without a schema in items, which OpenAI and VS Code refuse
  unmatched     an entry of the configuration's enabled or disabled, or the match of an
                override, a pin or a grant, that matches no tool
  unserved      a script in a directory whose scripts are not served
  ungranted     a tool that the configuration does not grant what it needs
  grant         a grant for every tool, and what is odd about the files of secrets

A grant is wrong, and the exit code 1, if one of its entries is needed by none of the tools
that it matches, or names a directory that does not exist.

--models shows for each tool which of these APIs take it, with and without their strict
modes, and the first reason of each that does not; --json has all reasons.

No tool is called. For a file without an embedded manifest, toolsrv_describe is run.

Exit codes: 0 a server takes all files, 1 it would refuse one (with --strict: or there is
a warning), 2 wrong usage.`,
		Example: `  toolsrv check greet.wasm
  toolsrv check --config toolsrv.toml --strict`,
		Args: func(_ *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return errors.New("the name of a file is empty: name a .wasm file")
			}
			return nil
		},
		RunE:              c.run,
		ValidArgsFunction: completeFiles,
	}
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&c.config), "config", "check the tools directory of this configuration `file`")
	flags.BoolVar(&c.strict, "strict", false, "fail on warnings, too")
	flags.BoolVar(&c.asJSON, "json", false, "print a JSON object")
	flags.BoolVar(&c.models, "models", false, "show which model APIs take each tool for function calling")
	addWithFlag(cmd, &c.with)
	return cmd
}

// checked is what `toolsrv check --json` prints. Its members are stable.
type checked struct {
	Files []*checkedFile `json:"files"`
	// Unmatched are entries of the configuration that match no tool.
	Unmatched []unmatched `json:"unmatched,omitempty"`
	// Unserved are scripts in the configured directory that a server ignores, since tools.scripts is false.
	Unserved []string `json:"unserved,omitempty"`
	// Grants are findings about the configuration's grants that are wrong or dangerous.
	Grants   []capability.Finding `json:"grants,omitempty"`
	Refused  int                  `json:"refused"`
	Warnings int                  `json:"warnings"`

	config   string
	settings *config.Config
	granted  *broker.Grants // nil if there is no configuration
	tools    []*wasmtools.Tool
}

// wrongGrants returns how many entries of grants are wrong.
func (c *checked) wrongGrants() (n int) {
	for _, f := range c.Grants {
		if !f.Warning {
			n++
		}
	}
	return n
}

type unmatched struct {
	Key     string `json:"key"`
	Entry   string `json:"entry,omitempty"` // if it looks like a tool
	Message string `json:"message"`
}

type ungranted struct {
	Tool    string   `json:"tool"` // its path
	Missing []string `json:"missing"`
}

type checkedFile struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	// Reason is why a server would refuse it.
	Reason   string             `json:"reason,omitempty"`
	Tools    []string           `json:"tools"` // paths
	Warnings []toolfile.Finding `json:"warnings"`
	// Ungranted are the tools that lack a grant in the configuration.
	Ungranted []ungranted `json:"ungranted,omitempty"`
	// Models has an entry for each tool, with --models.
	Models []modelSupport `json:"models,omitempty"`

	author    bool             // Reason is an error in a script, for its author
	turn      int              // the order in which a catalog gives files their paths
	listed    *catalog.File    // nil if it belongs to no source
	declared  []string         // the paths of its tools, even if the file is refused
	module    *toolfile.Module // nil: refused
	described bool             // its manifest is known only after running it
}

func (c *check) run(cmd *cobra.Command, args []string) error {
	switch {
	case c.config == "" && len(args) == 0:
		return &usageError{errors.New("nothing to check: name .wasm files, or a configuration with --config")}
	case c.config != "" && len(args) > 0:
		return &usageError{errors.New("--config checks the files of its directory: leave out --config, or the files")}
	case c.config != "" && len(c.with) > 0:
		return &usageError{errors.New("--with is for scripts on the command line; a server doesn't use such folders: leave out --config, or --with")}
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	stderr := cmd.ErrOrStderr()
	all, err := c.look(ctx, stderr, args)
	if err != nil {
		return err
	}
	if c.asJSON {
		err = printJSON(cmd.OutOrStdout(), all)
	} else {
		err = all.print(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return err
	case all.Refused > 0:
		return fmt.Errorf("a server would refuse %d of %d files", all.Refused, len(all.Files))
	case all.wrongGrants() > 0:
		return fmt.Errorf("%s: wrong entries in its grants: %d", c.config, all.wrongGrants())
	case c.strict && all.Warnings > 0:
		return fmt.Errorf("warnings: %d, and --strict allows none", all.Warnings)
	case len(all.Files) == 0:
		fmt.Fprintf(stderr, "%s has no tool files\n", oneLine(strings.Join(placesOf(all.settings), ", ")))
	}
	return nil
}

// look finds out what a server would say about the files that args name, or about those of the configuration.
func (c *check) look(ctx context.Context, stderr io.Writer, args []string) (*checked, error) {
	settings := config.Default()
	if c.config != "" {
		var err error
		if settings, err = loadConfig(c.config); err != nil {
			return nil, err
		}
		if err := core.CheckNATS(settings); err != nil {
			return nil, fmt.Errorf("%s: state: %w", c.config, err)
		}
	}
	tools, err := core.OpenBare(ctx, settings, 1, newLogger(stderr, slog.LevelWarn))
	if err != nil {
		return nil, err
	}
	defer tools.Close()
	files, unserved, err := c.load(ctx, tools.Engine, settings, args)
	if err != nil {
		return nil, err
	}
	done := showWaiting(stderr, fmt.Sprintf("compiling %d files", len(files)))
	compileAll(ctx, files)
	done()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted: not all files were checked")
	}
	all := &checked{Files: files, settings: settings}
	if c.config == "" {
		return all, all.judge(nil, c.models)
	}
	// The state is not opened, since a server may be using it: an empty one in memory takes its place, and the invoker is never used.
	if all.granted, err = broker.New(settings, broker.Options{Invoker: invoker.New(invoker.Options{})}).Make(settings, memory.New()); err != nil {
		return nil, fmt.Errorf("%s: %w", c.config, err)
	}
	if err := all.judge(all.granted, c.models); err != nil {
		return nil, err
	}
	all.Unserved = unserved
	all.match(c.config, all.granted.Warnings())
	return all, nil
}

// placesOf returns a configuration's sources of tools.
func placesOf(c *config.Config) (all []string) {
	for _, s := range configured.Sources(c) {
		all = append(all, configured.Place(s))
	}
	return all
}

// load loads the files that args name, or the files of the configured directories, and returns the scripts beside them.
func (c *check) load(ctx context.Context, engine *sandbox.Engine, settings *config.Config, args []string) (files []*checkedFile, unserved []string, err error) {
	add := func(name string, load func() (*toolfile.Module, error)) *checkedFile {
		f := &checkedFile{File: name, Tools: []string{}, Warnings: []toolfile.Finding{}}
		files = append(files, f)
		var err error
		f.module, err = load()
		f.refuse(err)
		f.described = err == nil && f.module.Describes()
		return f
	}
	if c.config == "" {
		for _, name := range args {
			add(name, func() (*toolfile.Module, error) {
				content, _, err := workbench.Read(ctx, name, c.with)
				if err != nil {
					return nil, err
				}
				return toolfile.Load(engine, content, toolfile.Place{Source: name})
			})
		}
		return files, nil, nil
	}
	sources, err := core.OpenSources(settings, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.config, err)
	}
	defer sources.Close()
	listed, err := catalog.List(ctx, sources.All)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: list the tools: %w", c.config, err)
	}
	for _, file := range listed {
		f := add(file.Place, func() (*toolfile.Module, error) {
			if file.Err != nil {
				return nil, file.Err
			}
			return file.Load(ctx, engine)
		})
		f.turn, f.listed = file.Turn, &file
	}
	return files, sources.Unserved(), nil
}

// refuse records why a file would be refused. err is nil if it would not be.
func (f *checkedFile) refuse(err error) {
	if err == nil {
		return
	}
	if f.module != nil {
		f.module.Close()
		f.module = nil
	}
	f.Reason = err.Error()
	f.author = isAuthors(err)
}

// compileAll compiles the files, and describes those without an embedded manifest. It does a few at a time, since each may take much memory.
func compileAll(ctx context.Context, files []*checkedFile) {
	var all sync.WaitGroup
	turns := make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))
	for _, f := range files {
		if f.module == nil {
			continue
		}
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			err := f.module.Compile(ctx)
			if err == nil {
				err = f.module.Describe(ctx)
			}
			f.refuse(err)
		})
	}
	all.Wait()
}

// judge finds out which of the files a server would serve together, and lints these. grants may be nil.
func (c *checked) judge(grants toolfile.Granter, models bool) error {
	limitsFor := func(path string) limits.Limits { return configured.Limits(c.settings, path) }
	taken, pins := map[string]*wasmtools.Tool{}, configured.PinsOf(c.settings)
	for _, f := range inTurn(c.Files) {
		if f.module != nil {
			f.declared = f.module.Paths()
			f.refuse(f.fit(taken, pins, limitsFor, grants))
		}
		if f.module == nil {
			c.Refused++
			continue
		}
		f.OK = true
		f.Warnings = append(f.Warnings, f.module.Lint()...)
		if err := f.askAgents(models); err != nil {
			return fmt.Errorf("%s: %w", f.File, err)
		}
		for _, t := range f.module.Tools() {
			if c.tools = append(c.tools, t); grants != nil && len(t.Missing) > 0 {
				f.Ungranted = append(f.Ungranted, ungranted{t.Path(), lacking.Each(t.Missing)})
			}
		}
		c.Warnings += len(f.Warnings) + len(f.Ungranted)
		f.module.Close()
	}
	return nil
}

// inTurn returns the files in the order in which a catalog gives them their paths: the first of two with the same path gets it.
func inTurn(files []*checkedFile) []*checkedFile {
	return slices.SortedStableFunc(slices.Values(files), func(a, b *checkedFile) int {
		switch {
		case a.turn != b.turn:
			return cmp.Compare(a.turn, b.turn)
		case a.described == b.described:
			return 0
		case a.described:
			return 1
		}
		return -1
	})
}

// match finds entries of the configuration for tools that do not exist, and wrong grants. odd are the findings about the configuration's secrets.
func (c *checked) match(file string, odd []string) {
	c.config = file
	var paths, names []string
	for _, f := range c.Files {
		paths = append(paths, f.declared...)
		if f.listed != nil {
			names = append(names, f.listed.Name)
		}
	}
	for _, u := range configured.UnmatchedOf(c.settings, paths, names) {
		c.Unmatched = append(c.Unmatched, unmatched{u.Key, u.Entry, u.String()})
	}
	c.Grants = broker.Review(c.settings, c.tools)
	for _, warning := range odd {
		c.Grants = append(c.Grants, capability.Finding{Key: "secrets", Message: warning, Warning: true})
	}
	c.Warnings += len(c.Unserved) + len(c.Unmatched) + len(c.Grants) - c.wrongGrants()
}

// fit adds a file's tools to the others, by operation id.
func (f *checkedFile) fit(taken map[string]*wasmtools.Tool, pins *configured.Pins, limitsFor func(path string) limits.Limits, grants toolfile.Granter) error {
	if f.listed != nil {
		if err := f.listed.Check(f.module); err != nil {
			return err
		}
		if err := pins.Check(f.listed.Name, f.declared, f.module.Digest()); err != nil {
			return err
		}
	}
	if err := f.module.Build(limitsFor, grants); err != nil {
		return err
	}
	if err := f.module.CheckMemory(); err != nil {
		return err
	}
	tools := f.module.Tools()
	for _, t := range tools {
		if first, ok := taken[t.OperationID()]; ok {
			return wasmtools.Conflict(first, t)
		}
	}
	for _, t := range tools {
		taken[t.OperationID()] = t
		f.Tools = append(f.Tools, t.Path())
	}
	return nil
}

// quoted returns the message of an error in a script in such a form that no line can be taken for one of check's own. All lines are indented, except
// those that begin with a place in a file, which editors look for.
func quoted(words string) string {
	lines := strings.Split(words, "\n")
	for i, line := range lines {
		if line != "" && !atPlace.MatchString(line) {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// atPlace matches the beginning of a line that names a place in a file.
var atPlace = regexp.MustCompile(`^[^\s:]+:[0-9]+:`)

func (c *checked) print(w io.Writer) error {
	for _, f := range c.Files {
		line := fmt.Sprintf("refused  %s: %s", oneLine(f.File), oneLine(f.Reason))
		switch {
		case f.OK:
			line = fmt.Sprintf("ok       %s: %s", oneLine(f.File), pathList(f.Tools))
		case f.author: // the reason's first line begins with the place
			line = fmt.Sprintf("refused  %s:\n%s", oneLine(f.File), quoted(text.Escape(f.Reason)))
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
		for _, warning := range f.Warnings {
			if _, err := fmt.Fprintf(w, "warning  %s: tool %s, %s: %s (%s)\n", oneLine(f.File), oneLine(warning.Tool), oneLine(warning.Place),
				oneLine(warning.Message), warning.Rule); err != nil {
				return err
			}
		}
		for _, u := range f.Ungranted {
			if _, err := fmt.Fprintf(w, "warning  %s: tool %s: it can't be called, because the configuration does not grant it %s (ungranted)\n", oneLine(f.File),
				oneLine(u.Tool), oneLine(strings.Join(u.Missing, ", "))); err != nil {
				return err
			}
		}
		if err := printModels(w, f); err != nil {
			return err
		}
	}
	for _, script := range c.Unserved {
		if _, err := fmt.Fprintf(w, "warning  %s: it is not served: set tools.scripts = true, or scripts in its [[source]], to serve scripts (unserved)\n", oneLine(script)); err != nil {
			return err
		}
	}
	for _, f := range c.Grants {
		kind := "wrong   "
		if f.Warning {
			kind = "warning "
		}
		place := oneLine(c.config)
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
		if _, err := fmt.Fprintf(w, "%s %s: %s: %s (grant)\n", kind, place, oneLine(f.Key), oneLine(f.Message)); err != nil {
			return err
		}
	}
	for _, u := range c.Unmatched {
		if _, err := fmt.Fprintf(w, "warning  %s: %s: %s (unmatched)\n", oneLine(c.config), oneLine(u.Key), oneLine(u.Message)); err != nil {
			return err
		}
	}
	return nil
}
