package command

import (
	"errors"
	"log/slog"
	"math"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// logNothing is a level above all others.
const logNothing = slog.Level(math.MaxInt32)

// A limitFlag is a flag that sets a limit, within the bounds of the configuration file.
type limitFlag struct {
	limits    *limits.Limits
	key, kind string
}

func (f limitFlag) Set(text string) error { return config.SetLimit(f.limits, f.key, text) }

func (f limitFlag) String() string { return "" }

func (f limitFlag) Type() string { return f.kind }

// A fileFlag names a file. It can't be set to nothing: an unset variable in a script must not mean the default.
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

// addLevelFlag gives cmd the flag --log-level, which sets the least level of what.
func addLevelFlag(cmd *cobra.Command, level *slog.Level, what string) {
	cmd.Flags().Var((*levelFlag)(level), "log-level", "least `level` "+what+": debug, info, warn or error")
	completeFlag(cmd, "log-level", cobra.FixedCompletions([]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
}
