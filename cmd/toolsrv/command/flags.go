package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// logNothing is a level above all others.
const logNothing = slog.Level(math.MaxInt32)

// A limitFlag is a flag that sets a limit, within the bounds of the configuration file.
type limitFlag struct {
	limits *limits.Limits
	entry  *limittable.Limit
}

func (f limitFlag) Set(text string) error {
	e := f.entry
	return keys.Quantity(e.Unit, e.Least, e.Most, func(n int64) { e.Set(f.limits, n) })(text)
}

func (f limitFlag) String() string { return "" }

func (f limitFlag) Type() string { return "limit" }

// A fileFlag names a file. It can't be empty: an unset variable in a script must not mean the default.
type fileFlag string

func (f *fileFlag) Set(name string) error {
	if name == "" {
		return errors.New("it is empty: name a file or leave it out")
	}
	*f = fileFlag(name)
	return nil
}

func (f *fileFlag) String() string { return string(*f) }

func (f *fileFlag) Type() string { return "file" }

// A wordFlag says whom to trust. Like a file flag, it can't be empty.
type wordFlag string

func (f *wordFlag) Set(word string) error {
	if word == "" {
		return errors.New("it is empty: give it a value or leave it out")
	}
	*f = wordFlag(word)
	return nil
}

func (f *wordFlag) String() string { return string(*f) }

func (f *wordFlag) Type() string { return "string" }

// A levelFlag is a level of the log.
type levelFlag slog.Level

func (f *levelFlag) Set(text string) error {
	if err := (*slog.Level)(f).UnmarshalText([]byte(text)); err != nil {
		return errors.New("choose debug, info, warn or error")
	}
	return nil
}

func (f *levelFlag) String() string { return slog.Level(*f).String() }

func (f *levelFlag) Type() string { return "level" }

// addLevelFlag gives cmd the flag --log-level, which sets the lowest level of the lines that "what" names.
func addLevelFlag(cmd *cobra.Command, level *slog.Level, what string) {
	cmd.Flags().Var((*levelFlag)(level), "log-level", "lowest `level` "+what+": debug, info, warn or error")
	completeFlag(cmd, "log-level", cobra.FixedCompletions([]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
}

// fileFlags are the flags of the commands that call the tools of a file.
type fileFlags struct {
	config   string
	limits   limits.Limits // limits from flags, which override the configuration's
	logLevel slog.Level
	with     []string
	grants   grantFlags
}

func (f *fileFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&f.config), "config", "configuration `file` whose limits and grants apply, instead of the defaults")
	usages := map[string]string{
		"timeout": "how long a call may take: a `time` such as 200ms",
		"memory":  "how large the tool's memory may grow: a `size` such as 16MiB",
	}
	for _, e := range limittable.All() {
		if usage, ok := usages[e.Key]; ok {
			flags.Var(limitFlag{&f.limits, &e}, e.Key, usage+" (default "+e.DefaultText()+")")
			completeFlag(cmd, e.Key, cobra.NoFileCompletions)
		}
	}
	addLevelFlag(cmd, &f.logLevel, "of the tool's log lines that are shown")
	addWithFlag(cmd, &f.with)
	f.grants.add(cmd)
}

// open opens a file with the settings of the flags.
func (f *fileFlags) open(ctx context.Context, name string, stderr io.Writer) (*workbench.File, error) {
	c := config.Default()
	if f.config != "" {
		var err error
		if c, err = config.Load(f.config); err != nil {
			return nil, err
		}
	}
	if err := f.grants.apply(c); err != nil {
		return nil, err
	}
	return workbench.Open(ctx, name, workbench.Options{
		Config: c,
		Limits: f.limits,
		Logger: newAuthorLogger(stderr, f.logLevel),
		Stderr: stderr,
		With:   f.with,
		Compiling: func(size int) (done func()) {
			return showWaiting(stderr, fmt.Sprintf("compiling %s (%s)", name, text.RoundSize(size)))
		},
	})
}

// addWithFlag gives cmd the flag --with.
func addWithFlag(cmd *cobra.Command, with *[]string) {
	cmd.Flags().StringArrayVar(with, "with", nil, "`folder` with more packages for a script in Python; can be given several times")
	completeFlag(cmd, "with", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
}
