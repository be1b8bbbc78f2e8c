package command

import (
	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/licenses"
)

func newLicenses() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print what the program consists of, and the licence of each part",
		Long: `List everything that is in the program, with versions and licences, followed by the text of each
licence: toolsrv itself, the Go modules that are linked in, and the interpreters. Tool files made
from scripts contain the interpreters, too.`,
		Example: "  toolsrv licenses | less",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return licenses.Write(cmd.OutOrStdout())
		},
	}
}
