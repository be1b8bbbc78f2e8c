package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/rates"
)

func newTokens() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Make, list and revoke the tokens of a running server",
		Long: `Make, list and revoke tokens of a running server. A token has a name, which appears in the log,
scopes, which say what it may do, and an expiry. Each change is in force when the command ends.

With the first token, callers without one are refused from then on.`,
		Args: noArguments,
	}
	cmd.AddCommand(newTokensAdd(), newTokensAttenuate(), newTokensList(), newTokensShow(), newTokensScopes(), newTokensRate(), newTokensRotate(), newTokensRevoke())
	return cmd
}

// scopesHelp is the text about scopes.
const scopesHelp = `A scope is a pattern of tools such as 'math/*', '*' for all, or one of the roles admin, admin:read
and metrics, which '*' does not have. Without a scope a token may do nothing. math/add@FINGERPRINT
is that tool as long as what clients see of it stays the same; 'toolsrv tools --json' shows the
fingerprints.`

func newTokensAdd() *cobra.Command {
	return newTokenMaker("tokens add", "add NAME", "Make a token",
		"Make a token for a program or a person, and print it. It is printed only once: the server keeps\njust its SHA-256.\n\n"+scopesHelp,
		"  toolsrv tokens add ci --scope 'math/*' --scope web/get\n  toolsrv tokens add ann --scope '*' --scope admin --expires 30d --cidr 10.0.0.0/8")
}

func newTokensAttenuate() *cobra.Command {
	return newTokenMaker("tokens attenuate", "attenuate NAME", "Make a narrower token from the one in TOOLSRV_TOKEN",
		"Make a token that may do part of what the token in "+tokenVariable+" may. Its name is that\ntoken's with /NAME appended. It ends with that token, and can never do more.\n\n"+scopesHelp,
		"  toolsrv tokens attenuate night --scope math/add --expires 8h --server https://tools.example.com")
}

func newTokenMaker(operation, use, short, long, example string) *cobra.Command {
	var o asking
	var in admin.NewToken
	cmd := newAsking(&o, &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: oneToken, ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Name = args[0]
		return ask(ctx, &o, c, out, operation, in, showMade)
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&in.Scopes, "scope", nil, "`pattern` of tools, or role; can be given several times")
	flags.Var(filled{&in.Expires}, "expires", "how long it lasts: a `time` such as 90d or 12h, or never (default 90d)")
	flags.StringArrayVar(&in.Networks, "cidr", nil, "`range` of addresses that may use it; can be given several times")
	addBounds(cmd, &in.TokenBounds)
	for _, name := range []string{"scope", "expires", "cidr"} {
		completeFlag(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// A filled is a flag that refuses an empty value: if a script's variable is not set, a token must not be made without the intended rate or expiry.
type filled struct{ to *string }

func (f filled) String() string {
	if f.to == nil {
		return ""
	}
	return *f.to
}

func (filled) Type() string { return "string" }

func (f filled) Set(s string) error {
	if s == "" {
		return errors.New("it is empty: give a value, or leave the flag out")
	}
	*f.to = s
	return nil
}

// addBounds adds the flags that limit a token's calls.
func addBounds(cmd *cobra.Command, b *admin.TokenBounds) {
	flags := cmd.Flags()
	flags.Var(filled{&b.Rate}, "rate", "how many calls it may make on average: a `rate` such as 10/s, 100/min or 1000/h")
	flags.IntVar(&b.Burst, "burst", 0, "how many calls it may make in a burst: a `number` (default as in rates.default, or the number in --rate)")
	flags.IntVar(&b.Concurrent, "concurrent", 0, "how many of its calls may run at the same time: a `number` (default as in rates.default)")
	for _, name := range []string{"rate", "burst", "concurrent"} {
		completeFlag(cmd, name, cobra.NoFileCompletions)
	}
}

func newTokensRate() *cobra.Command {
	var o asking
	var in admin.TokenRate
	cmd := newAsking(&o, &cobra.Command{
		Use: "rate NAME", Short: "Give a token another rate",
		Long: `Change how many calls a token may make. Calls beyond that get 429. Calls with narrower tokens made
from it count as well. What no flag sets is as in rates.default of the configuration. Calls already
counted stay counted.`,
		Example: "  toolsrv tokens rate ci --rate 100/min --burst 20 --concurrent 4",
		Args:    oneToken, ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Name = args[0]
		return ask(ctx, &o, c, out, "tokens rate", in, showChanged)
	})
	o.addExpected(cmd)
	addBounds(cmd, &in.TokenBounds)
	return cmd
}

func newTokensList() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use: "list", Short: "List the tokens of a running server",
		Long:    "List the tokens of a running server, and those that its configuration declares: who has each, when\nit expires, and when it was last used.",
		Example: "  toolsrv tokens list\n  toolsrv tokens list --json",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "tokens list", struct{}{}, func(w io.Writer, t *admin.Tokens) error {
			if len(t.Tokens) == 0 {
				_, err := io.WriteString(w, "No token has a name: toolsrv tokens add makes one.\n")
				return err
			}
			rows := [][]string{{"NAME", "ID", "STATE", "EXPIRES", "USED", "SCOPES"}}
			for _, one := range t.Tokens {
				rows = append(rows, []string{one.Name, one.ID, one.State, at(one.Expires, "never"), at(one.Used, ""), strings.Join(one.Scopes, " ")})
			}
			return table(w, rows)
		})
	})
}

func newTokensShow() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use: "show NAME", Short: "Show a token of a running server",
		Long:    "Show what is known about a token, given its name or its beginning up to the secret. Nobody can read\nthe secret.",
		Example: "  toolsrv tokens show ci\n  toolsrv tokens show tsv_k3v5zq2m7a",
		Args:    oneToken, ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "tokens show", admin.TokenName{Name: args[0]}, showToken)
	})
}

func newTokensRotate() *cobra.Command {
	var o asking
	var in admin.Rotation
	cmd := newAsking(&o, &cobra.Command{
		Use: "rotate NAME", Short: "Give a token a new secret",
		Long:    "Give a token a new secret, and the same lifetime as at first. With --grace the old secret stays\nvalid for a while.",
		Example: "  toolsrv tokens rotate ci --grace 1h",
		Args:    oneToken, ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Name = args[0]
		return ask(ctx, &o, c, out, "tokens rotate", in, showMade)
	})
	o.addExpected(cmd)
	cmd.Flags().Var(filled{&in.Grace}, "grace", "how long the old secret stays valid: a `time` such as 1h (default: not at all)")
	completeFlag(cmd, "grace", cobra.NoFileCompletions)
	return cmd
}

func newTokensScopes() *cobra.Command {
	var o asking
	in := admin.TokenScopes{Scopes: []string{}}
	cmd := newAsking(&o, &cobra.Command{
		Use: "scopes NAME [SCOPE...]", Short: "Give a token other scopes",
		Long:    "Replace a token's scopes with these. Its secret stays the same. Narrower tokens made from it lose\nthe scopes that it loses.\n\n" + scopesHelp,
		Example: "  toolsrv tokens scopes ci 'math/*' admin:read",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return errors.New("NAME is missing: whose scopes?")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Name = args[0]
		in.Scopes = append(in.Scopes, args[1:]...)
		return ask(ctx, &o, c, out, "tokens scopes", in, showChanged)
	})
	o.addExpected(cmd)
	return cmd
}

func newTokensRevoke() *cobra.Command {
	var o asking
	var in admin.Revocation
	cmd := newAsking(&o, &cobra.Command{
		Use: "revoke NAME", Short: "End a token",
		Long: `End a token, and the narrower ones made from it, which --dry-run names beforehand: the next request
with one is refused, and its streams and sessions end. Revoking the last token doesn't let callers
without a token in again.`,
		Example: "  toolsrv tokens revoke ci --dry-run\n  toolsrv tokens revoke ci",
		Args:    oneToken, ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Name = args[0]
		return ask(ctx, &o, c, out, "tokens revoke", in, showRevoked)
	})
	o.addExpected(cmd)
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "change nothing, and say which tokens would end")
	return cmd
}

func newSelf() *cobra.Command {
	var o asking
	return newAsking(&o, &cobra.Command{
		Use: "self", Short: "Show who you are to a running server, and what you may do",
		Long:    "Show the caller that a running server takes you for, the tools that you may call, and your roles.\nAny token will do.",
		Example: "  toolsrv self --server https://tools.example.com",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "self", struct{}{}, func(w io.Writer, s *admin.Self) error {
			rows := [][]string{{"name", s.Name}, {"known by", s.Origin}, {"tools", strings.Join(s.Scopes, " ")}, {"roles", strings.Join(s.Roles, " ")}}
			if s.Principal != "" {
				rows = append(rows, []string{"keeps as", s.Principal})
			}
			for _, r := range s.Rates {
				text := r.Of + ": " + boundsText(r.TokenBounds)
				if r.Rate != "" {
					text += fmt.Sprintf("; %d left now", r.Left)
				}
				rows = append(rows, []string{"rate", text})
			}
			if s.Token != nil {
				rows = append(rows, []string{"expires", at(s.Token.Expires, "never")})
			}
			return table(w, rows)
		})
	})
}

// oneToken takes the name of a token.
func oneToken(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("name one token, as in %s ci", cmd.CommandPath())
	}
	return nil
}

func showMade(w io.Writer, made *admin.TokenMade) error {
	fmt.Fprintf(w, "%s\n\nThis is the token of %s. Store it now: it can't be shown again.\n", oneLine(made.Secret), oneLine(made.Token.Name))
	return showWarnings(w, made.Warnings)
}

func showRevoked(w io.Writer, t *admin.TokenRevoked) error {
	done := "is revoked"
	if t.DryRun {
		done = "would be revoked"
	}
	fmt.Fprintf(w, "The token %s %s.\n", oneLine(t.Token.Name), done)
	if len(t.Ends) > 0 {
		fmt.Fprintln(w, "These narrower tokens end with it:")
	}
	for _, name := range t.Ends {
		fmt.Fprintf(w, "  %s\n", oneLine(name))
	}
	return nil
}

func showChanged(w io.Writer, changed *admin.TokenChanged) error {
	if err := showToken(w, &changed.Token); err != nil {
		return err
	}
	return showWarnings(w, changed.Warnings)
}

func showWarnings(w io.Writer, warnings []string) error {
	for _, warning := range warnings {
		if _, err := fmt.Fprintf(w, "Note: %s.\n", oneLine(warning)); err != nil {
			return err
		}
	}
	return nil
}

func showToken(w io.Writer, t *admin.Token) error {
	rows := [][]string{{"name", t.Name}, {"id", t.ID}, {"state", t.State}, {"scopes", strings.Join(t.Scopes, " ")}, {"networks", strings.Join(t.Networks, " ")},
		{"expires", at(t.Expires, "never")}, {"used", at(t.Used, "never")}}
	if bounds := boundsText(t.TokenBounds); bounds != "" {
		rows = append(rows, []string{"rate", bounds})
	}
	if t.Former != nil {
		rows = append(rows, []string{"old secret", "taken until " + at(t.Former, "")})
	}
	if t.Declared {
		rows = append(rows, []string{"declared", "in [[auth.token]]"})
	}
	return table(w, append(rows, []string{"made", at(t.Created, "")}, []string{"by", t.By}, []string{"version", t.Version}))
}

// boundsText returns the rate of a token in words, or "".
func boundsText(b admin.TokenBounds) string {
	r, err := rates.Text(b).Parse()
	if err != nil { // an unknown unit, from a newer server
		return b.Rate
	}
	return rates.Describe(r)
}

// at returns a time in the form for tables, or "none" if there is no time.
func at(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}
