package command

import (
	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/licenses"
)

func newLicenses() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print what the program consists of, and the licence of each part",
		Long: `Print a list of all that is in the program, with versions and licences, and then the text
of each licence: of toolsrv itself, of the Go modules that are linked in, and of the
interpreters. These are in each tool file that is made of a script, too.`,
		Example: "  toolsrv licenses | less",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return licenses.Write(cmd.OutOrStdout())
		},
	}
}
