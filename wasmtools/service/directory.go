package service

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/directory"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/script"
	"github.com/toolsrv/toolsrv/wasmtools/script/engine"
)

// OpenDirectory opens the tools directory as the configuration says: with its scripts, or without. The caller closes it.
func OpenDirectory(c *config.Config, logger *slog.Logger) (*directory.Directory, error) {
	return openDirectory(c, logger, nil, nil)
}

// openDirectory is OpenDirectory with what was read of scripts before, or nil, and who is told of the memory that reading takes, or nil.
func openDirectory(c *config.Config, logger *slog.Logger, before *script.Memory, claim func(bytes int64) (give func())) (*directory.Directory, error) {
	o := directory.Options{Modules: c.Tools.Modules, Logger: logger}
	builder := script.Builder{Engines: engine.Carried(), Helper: c.Tools.ScriptHelper, Memory: before, Readers: script.NewReaders(account.MachineMemory(), claim)}
	if c.Tools.Scripts {
		o.Scripts = builder
	} else {
		o.IsScript = func(name string) bool { return builder.IsScript(name) && !builder.IsPart(name) }
	}
	return directory.Open(c.Tools.Directory, o)
}

// CheckDirectory returns an error that says what to do if the tools directory is missing, or is not a directory. The error has the
// absolute path, since its reader may not know where the server was started.
func CheckDirectory(c *config.Config) error {
	directory := c.Tools.Directory
	if abs, err := filepath.Abs(directory); err == nil {
		directory = abs
	}
	switch info, err := os.Stat(directory); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no tools directory %s: make it, and put .wasm files into it, or set tools.directory to the one that holds them", directory)
	case err != nil:
		return fmt.Errorf("look at the tools directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the tools directory %s is a file: set tools.directory to the folder that holds the .wasm files", directory)
	}
	return nil
}
