package toolfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/text"
)

// ReadFile reads a module's file for a command. It returns an error if the file is larger than a module may be.
func ReadFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		if config := filepath.Join(name, "toolsrv.toml"); isFile(config) {
			return nil, fmt.Errorf("%s is a folder with a configuration: name a script or a .wasm file in it; `toolsrv check --config %s` checks everything that a server would serve", name, text.ShellQuote(config))
		}
		return nil, fmt.Errorf("%s is a folder: name a .wasm file in it, or make one with `toolsrv build %s`", name, text.ShellQuote(name))
	}
	if filepath.Ext(name) == ".toml" {
		return nil, fmt.Errorf("%s is not a module: `toolsrv check --config %s` checks a configuration", name, text.ShellQuote(name))
	}
	content, err := io.ReadAll(io.LimitReader(file, sandbox.MaxModule+1))
	if err != nil {
		return nil, fmt.Errorf("read the module: %w", err)
	}
	if len(content) > sandbox.MaxModule {
		return nil, fmt.Errorf("%s is larger than the limit for a module, %s: strip it of debug information", name, text.Size(sandbox.MaxModule))
	}
	return content, nil
}

// isFile reports whether a file with a name exists.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
