package command

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/manifest"
	mcpdoor "github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

// build is what `toolsrv version` prints. Its JSON members are stable.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Wazero   string `json:"wazero"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	// Engines are the interpreters that the binary carries for scripts.
	Engines []engine.About `json:"engines"`
	// ABI is the version of the contract with tool files, and MCP has the supported versions of that protocol, the newest first.
	ABI int      `json:"abi"`
	MCP []string `json:"mcp"`

	committed string // when the revision was made, in RFC 3339, or ""
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of toolsrv and of what it is built with",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := readBuild()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), b)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), b.String())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// readBuild reads what the Go tool wrote into the binary ("unknown" where it wrote nothing), and the versions of the engines.
func readBuild() (build, error) {
	b := build{
		Version:  "unknown",
		Revision: "unknown",
		Go:       runtime.Version(),
		Wazero:   "unknown",
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		Engines:  []engine.About{},
		ABI:      manifest.ABI,
		MCP:      mcpdoor.Versions(),
	}
	engines, err := engine.Carried().List()
	if err != nil {
		return b, err
	}
	b.Engines = append(b.Engines, engines...)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b, nil
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.time":
			b.committed = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	for _, module := range info.Deps {
		if module.Path == "github.com/tetratelabs/wazero" {
			b.Wazero = module.Version
		}
	}
	return b, nil
}

// String returns the build as lines.
func (b build) String() string {
	modified := ""
	if b.Modified {
		modified = ", modified"
	}
	engines := make([]string, len(b.Engines))
	for i, e := range b.Engines {
		engines[i] = e.String()
	}
	return fmt.Sprintf("toolsrv %s (revision %s%s)\ngo      %s\nwazero  %s\nos/arch %s/%s\nengines %s\nabi     %d\nmcp     %s\n",
		b.Version, b.Revision, modified, b.Go, b.Wazero, b.OS, b.Arch, strings.Join(engines, ", "), b.ABI, strings.Join(b.MCP, ", "))
}
