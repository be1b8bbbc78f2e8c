package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/ownership"
)

func newCache() *cobra.Command {
	return &cobra.Command{
		Use:   "cache DIR",
		Short: "Make a folder for compiled code",
		Long: `Make a folder for compiled code that nobody but this user can change. If the folder exists, nothing
happens.

It is meant for containers, whose image has no other program for this. A server runs the code in
its cache directory, so it accepts no directory that others could change. An emptyDir of
Kubernetes is writable by everybody: an init container makes a folder inside it, and the server's
container mounts only that folder, by its subPath.`,
		Example: `  toolsrv cache /mnt/toolsrv`,
		Args:    takes(1, "DIR is missing: name a folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "" {
				return &usageError{errors.New("DIR is empty: name a folder")}
			}
			return makeCache(args[0])
		},
	}
}

// makeCache makes a folder that only its owner can use, whatever the umask. The parent folder must exist: if it is missing, a volume was not mounted.
func makeCache(dir string) error {
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		return os.Chmod(dir, 0o700) // a new folder inherits the setgid bit from folders that Kubernetes makes
	case !errors.Is(err, os.ErrExist):
		return fmt.Errorf("make the folder for compiled code: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s exists and is not a folder: remove it", dir)
	}
	return ownership.CheckFile(dir, info)
}
