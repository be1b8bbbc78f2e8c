package command

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
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
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of toolsrv and of what it is built with",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), readBuild())
			}
			_, err := io.WriteString(cmd.OutOrStdout(), readBuild().String())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// readBuild reads what the Go tool wrote into the binary. What it did not write is "unknown".
func readBuild() build {
	b := build{
		Version:  "unknown",
		Revision: "unknown",
		Go:       runtime.Version(),
		Wazero:   "unknown",
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	for _, module := range info.Deps {
		if module.Path == "github.com/tetratelabs/wazero" {
			b.Wazero = module.Version
		}
	}
	return b
}

// String returns the build as lines.
func (b build) String() string {
	modified := ""
	if b.Modified {
		modified = ", modified"
	}
	return fmt.Sprintf("toolsrv %s (revision %s%s)\ngo      %s\nwazero  %s\nos/arch %s/%s\n",
		b.Version, b.Revision, modified, b.Go, b.Wazero, b.OS, b.Arch)
}
