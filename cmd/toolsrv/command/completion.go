package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// completeFlag makes a shell complete the value of a flag. The flag must exist.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// completeSource makes a shell complete the only argument to folders and scripts.
func completeSource(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return script.Endings(), cobra.ShellCompDirectiveFilterFileExt
}

// completeFiles makes a shell complete to tool files and scripts, and to folders that may contain such files.
func completeFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return append(script.Endings(), "wasm"), cobra.ShellCompDirectiveFilterFileExt
}

// completeModules makes a shell complete to .wasm files, and to folders that may contain such files.
func completeModules(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeTool makes a shell complete to a file, and then to the names of the tools in its manifest. It does not run the file.
func completeTool(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeFiles(cmd, args, typed)
	}
	var names []cobra.Completion
	if content, err := toolfile.ReadFile(args[0]); err == nil && len(args) == 1 {
		if r, err := toolfile.Inspect(content); err == nil && r.Manifest != nil {
			for _, t := range r.Manifest.Tools {
				if strings.HasPrefix(t.Name, typed) {
					names = append(names, cobra.CompletionWithDesc(t.Name, oneLine(firstLine(t.Description))))
				}
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
