package command

import (
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// grantFlags are the flags with which an author grants tools what they need, while a command runs.
type grantFlags struct {
	file    string
	http    []string
	secrets []string
}

func (g *grantFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&g.file), "grant", "`file` with [[grant]], [secrets] and [state] of a configuration; a grant without match applies to every tool")
	flags.StringArrayVar(&g.http, "allow-http", nil, "let the tools send requests below a `URL` that they declare, such as https://api.example.com; can be given several times")
	flags.StringArrayVar(&g.secrets, "secret", nil, "a secret from a file, as in `name=@file`, for tools that declare it; can be given several times")
	completeFlag(cmd, "grant", cobra.FixedCompletions([]cobra.Completion{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "allow-http", cobra.NoFileCompletions)
	completeFlag(cmd, "secret", cobra.NoFileCompletions)
}

// apply adds the grants of the flags to a configuration.
func (g *grantFlags) apply(c *config.Config) error {
	if g.file != "" {
		if err := c.LoadGrants(g.file, filepath.Dir(g.file)); err != nil {
			return err
		}
	}
	var sent http.Rule
	var seen secrets.Rule
	for _, url := range g.http {
		p, err := reach.ParsePattern(url)
		if err != nil {
			return &usageError{fmt.Errorf("--allow-http %s: %w", url, err)}
		}
		sent.Granted = append(sent.Granted, p.String())
		sent.Private = append(sent.Private, special(url)...)
	}
	if len(g.secrets) > 0 {
		files := maps.Clone(c.Secrets.Files)
		if files == nil {
			files = map[string]string{}
		}
		for _, given := range g.secrets {
			name, value, _ := strings.Cut(given, "=")
			file, ok := strings.CutPrefix(value, "@")
			if err := secret.CheckName(name); err != nil {
				return &usageError{fmt.Errorf("--secret: %w", err)}
			}
			if !ok || file == "" {
				// The text after the name may be the secret itself, so it is not repeated.
				return &usageError{fmt.Errorf("--secret %s: other users can read the command line: write the secret into a file, and name that, as in --secret %s=@FILE", name, name)}
			}
			files[name] = file
			seen.Visible = append(seen.Visible, name)
		}
		c.Secrets.Files = files
	}
	rules := capability.Rules{}
	if sent.Granted != nil {
		rules["http"] = &sent
	}
	if seen.Visible != nil {
		rules["secrets"] = &seen
	}
	if len(rules) > 0 {
		c.Grants = append(c.Grants[:len(c.Grants):len(c.Grants)], config.Grant{Match: everyTool, Rules: rules})
	}
	return nil
}

// everyTool is the pattern of all tools.
const everyTool = "**"

// special returns the non-public address that a URL names explicitly, such as that of a server on the author's own machine: somebody who writes
// http://127.0.0.1:3000 means it. A name that resolves to such an address needs a grant in a file.
func special(url string) []netip.Prefix {
	t, err := reach.ParseTarget(url)
	if err != nil {
		return nil
	}
	if t.Origin.Host == "localhost" {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}
	}
	a, err := netip.ParseAddr(t.Origin.Host)
	if err != nil {
		return nil
	}
	return []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
}

// tellMissing prints how an author can grant what tools lack, one line for each flag.
func tellMissing(w io.Writer, tools ...*wasmtools.Tool) {
	told := map[string]bool{}
	for _, tool := range tools {
		for _, lack := range tool.Missing {
			flag := "--grant FILE, with a [[grant]] as toolsrv inspect prints it"
			switch {
			case lack.Cause == wasmtools.NoSecret && lack.Entry == "":
				flag = "--secret NAME=@FILE, with the name in that header"
			case lack.Capability == "http" && lack.Entry != "":
				flag = "--allow-http " + text.ShellQuote(oneLine(lack.Entry))
			case lack.Capability == "secrets":
				flag = "--secret " + oneLine(lack.Entry) + "=@FILE"
			}
			if !told[flag] {
				fmt.Fprintf(w, "  grant it here: %s\n", flag)
			}
			told[flag] = true
		}
	}
}

// argv returns the flags for a program that is started in another folder.
func (g *grantFlags) argv() (argv []string, err error) {
	if g.file != "" {
		file, err := filepath.Abs(g.file)
		if err != nil {
			return nil, err
		}
		argv = append(argv, "--grant", file)
	}
	for _, url := range g.http {
		argv = append(argv, "--allow-http", url)
	}
	for _, secret := range g.secrets {
		name, value, _ := strings.Cut(secret, "=")
		file, err := filepath.Abs(strings.TrimPrefix(value, "@"))
		if err != nil {
			return nil, err
		}
		argv = append(argv, "--secret", name+"=@"+file)
	}
	return argv, nil
}
