package command

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/script"
)

// collectScript is the name of the command that a server starts to read scripts.
const collectScript = "collect-script"

// newCollectScript makes the command of that name, which is not for people.
func newCollectScript() *cobra.Command {
	return &cobra.Command{
		Use:     collectScript + " BYTES",
		Short:   "Collect the files that scripts need; started by a server",
		Example: "  toolsrv " + collectScript + " 67108864",
		Hidden:  true,
		Args:    takes(1, "BYTES is missing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return script.Serve(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// loadConfig loads a configuration file for a command that serves, or that does something as a server would.
func loadConfig(file string) (*config.Config, error) {
	c, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	implyState(c, filepath.Dir(file))
	return c, setHelper(c)
}

// compileModule is the name of the command that a server starts to compile modules.
const compileModule = "compile-module"

// newCompileModule makes the command of that name, which is not for people.
func newCompileModule() *cobra.Command {
	return &cobra.Command{
		Use:     compileModule + " BYTES",
		Short:   "Compile modules; started by a server",
		Example: "  toolsrv " + compileModule + " 67108864",
		Hidden:  true,
		Args:    takes(1, "BYTES is missing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return compile.Serve(args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// setHelper makes this program read the scripts of a tools directory, and compile modules, in separate processes.
func setHelper(c *config.Config) (err error) {
	self := "/proc/self/exe" // the file on disk may have been replaced by another program
	if runtime.GOOS != "linux" {
		if self, err = os.Executable(); err != nil {
			return err
		}
	}
	c.Tools.ScriptHelper = []string{self, collectScript}
	if runtime.GOOS == "linux" { // other systems can't limit the resources of child processes
		c.Tools.CompileHelper = []string{self, compileModule}
	}
	return nil
}
