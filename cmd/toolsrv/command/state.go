package command

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// stateFolder is where a server keeps its state, beside its configuration.
const stateFolder = ".toolsrv"

// implyState has a configuration without a directory for state keep it where systemd says, or in a folder beside it. Programs that embed a
// server have no such default: they own their working directory and their environment.
func implyState(c *config.Config, beside string) {
	if c.State.Directory != "" {
		return
	}
	given, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":") // the first of several
	if given == "" {
		given = filepath.Join(beside, stateFolder)
	}
	c.State.Directory, c.State.Implied = given, true
}
