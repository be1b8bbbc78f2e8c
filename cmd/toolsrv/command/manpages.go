package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newManPages makes a command for people who make packages.
func newManPages() *cobra.Command {
	return &cobra.Command{
		Use:    "manpages DIR",
		Short:  "Write a man page for each command into a folder",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return errors.New("name one folder to write the pages to")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readBuild()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManPages(cmd.Root(), args[0], b)
		},
		ValidArgsFunction: completeFolder,
	}
}

// completeFolder makes a shell offer folders for the only argument.
func completeFolder(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// writeManPages writes the pages of a command and of its subcommands.
func writeManPages(cmd *cobra.Command, dir string, of build) error {
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(manPage(cmd, of)), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		if err := writeManPages(c, dir, of); err != nil {
			return err
		}
	}
	return nil
}

// pageName returns the name of a command's page: toolsrv-completion-bash.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the page of a command, in the macros of man(7). Its date is the commit's, so that a version always has the same pages.
func manPage(cmd *cobra.Command, of build) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, ".SH %s\n", title) }
	asIs := func(text string) { fmt.Fprintf(&b, ".EX\n%s\n.EE\n", roff(strings.Trim(text, "\n"))) }
	date, _, _ := strings.Cut(of.committed, "T")
	fmt.Fprintf(&b, ".TH %s 1 %q \"toolsrv %s\" \"Commands of toolsrv\"\n", roff(strings.ToUpper(pageName(cmd))), date, roff(of.Version))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(pageName(cmd)), roff(strings.TrimSuffix(cmd.Short, ".")))
	section("SYNOPSIS")
	cmd.InitDefaultHelpFlag() // cobra only adds it to commands that do something
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, ".B %s\n", roff(use))
	for _, other := range cmd.Aliases {
		fmt.Fprintf(&b, ".br\n.B %s\n", roff(strings.TrimSuffix(cmd.CommandPath(), cmd.Name())+other))
	}
	section("DESCRIPTION")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	for i, paragraph := range strings.Split(strings.TrimSpace(long), "\n\n") {
		switch {
		case strings.Contains("\n"+paragraph, "\n ") || strings.Contains("\n"+paragraph, "\n\t"): // the paragraph is a table or commands
			b.WriteString(".PP\n")
			asIs(paragraph)
		case i > 0:
			b.WriteString(".PP\n")
			fallthrough
		default:
			b.WriteString(roff(paragraph) + "\n")
		}
	}
	if cmd.HasAvailableSubCommands() {
		section("COMMANDS")
		for _, c := range cmd.Commands() {
			if !c.Hidden && c.Name() != "help" {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s.\n", roff(pageName(c)), roff(c.Short))
			}
		}
	}
	section("OPTIONS")
	const columns = 78
	asIs(cmd.LocalFlags().FlagUsagesWrapped(columns))
	if cmd.Example != "" {
		section("EXAMPLES")
		asIs(cmd.Example)
	}
	section("SEE ALSO")
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".BR %s (1),\n", roff(pageName(cmd.Parent())))
	}
	b.WriteString("https://github.com/toolsrv/toolsrv\n")
	return b.String()
}

// roff returns text in which the characters that have a meaning in man pages are escaped.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
