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

// completeSource makes a shell offer folders and scripts for the only argument.
func completeSource(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return script.Endings(), cobra.ShellCompDirectiveFilterFileExt
}

// completeFiles makes a shell offer tool files and scripts, and folders that may contain such files.
func completeFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return append(script.Endings(), "wasm"), cobra.ShellCompDirectiveFilterFileExt
}

// completeModules makes a shell offer .wasm files, and folders that may contain such files.
func completeModules(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeTool makes a shell offer a file for the first argument, and then the names of the tools in the file's manifest. It does not run the file.
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
