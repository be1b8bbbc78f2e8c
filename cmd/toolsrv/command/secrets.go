package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
)

func newSecrets() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Set callers' own secrets on a running server",
		Long: `Set, list and remove each caller's own secrets on a running server. Where an operator has granted a
tool ${secret:NAME@principal}, it acts for each caller with that caller's secret, and for nobody
else.`,
		Args: noArguments,
	}
	cmd.AddCommand(newSecretsSet(), newSecretsList(), newSecretsRemove())
	return cmd
}

// ownHelp is the help text that says whose secrets the commands change.
const ownHelp = `With --server the secret belongs to the caller whose token is in ` + tokenVariable + `. An operator
names a caller with --principal, as toolsrv self shows it.`

func newSecretsSet() *cobra.Command {
	var o asking
	var in admin.NewSecret
	var cmd *cobra.Command
	cmd = newAsking(&o, &cobra.Command{
		Use: "set NAME", Short: "Set a secret",
		Long:    "Read a secret from standard input, and set it, replacing any with the same name. It is in force\nwhen the command ends, and nobody can read it back.\n\n" + ownHelp,
		Example: "  toolsrv secrets set github --server https://tools.example.com < github.key\n  toolsrv secrets set github --principal issued+ann < ann.key",
		Args:    oneSecret, ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) (err error) {
		in.Name = args[0]
		if in.Value, err = readSecret(cmd.InOrStdin(), cmd.ErrOrStderr()); err != nil {
			return err
		}
		return ask(ctx, &o, c, out, "secrets set", in, func(w io.Writer, s *admin.OwnSecretChanged) error {
			if _, err := fmt.Fprintf(w, "The secret %s of %s is set.\n", oneLine(s.Secret.Name), oneLine(s.Secret.Principal)); err != nil {
				return err
			}
			return showWarnings(w, s.Warnings)
		})
	})
	o.addExpected(cmd)
	addPrincipal(cmd, &in.Principal)
	return cmd
}

// maxSecretRead is how much of standard input is read for a secret.
const maxSecretRead = 64 << 10

// readSecret reads a secret without its last newline. On a terminal it asks for the secret, and does not show it.
func readSecret(in io.Reader, stderr io.Writer) (string, error) {
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(stderr, "The secret: ")
		text, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(stderr)
		return string(text), err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSecretRead))
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", &usageError{errors.New("standard input is empty: give the secret there, as in toolsrv secrets set github < github.key")}
	}
	return value, nil
}

func newSecretsList() *cobra.Command {
	var o asking
	var in admin.CallersArguments
	cmd := newAsking(&o, &cobra.Command{
		Use: "list", Short: "List secrets",
		Long:    "List the secrets of the caller whose token asks, or for an operator those of all callers. Nobody\ncan read the values.",
		Example: "  toolsrv secrets list --server https://tools.example.com\n  toolsrv secrets list --principal issued+ann",
		Args:    noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		return ask(ctx, &o, c, out, "secrets list", in, func(w io.Writer, all *admin.OwnSecrets) error {
			rows := [][]string{{"PRINCIPAL", "NAME", "SOURCE", "SET", "BY"}}
			has := map[string]bool{} // the caller who runs the command
			for _, one := range all.Secrets {
				rows = append(rows, []string{one.Principal, one.Name, one.Source, at(one.Set, ""), one.By})
				has[one.Name] = has[one.Name] || one.Principal == all.Principal
			}
			if len(all.Secrets) == 0 {
				rows = [][]string{{"No secrets are set: toolsrv secrets set sets one."}}
			}
			if err := table(w, rows); err != nil {
				return err
			}
			for _, one := range all.Wanted {
				if !has[one.Name] {
					fmt.Fprintf(w, "You have not set %s, which is used by %s.\n", oneLine(one.Name), oneLine(strings.Join(one.Tools, ", ")))
				}
			}
			return nil
		})
	})
	addPrincipal(cmd, &in.Principal)
	return cmd
}

func newSecretsRemove() *cobra.Command {
	var o asking
	var in admin.OwnSecretName
	cmd := newAsking(&o, &cobra.Command{
		Use: "remove NAME", Short: "Remove a secret",
		Long:    "Remove a secret. From then on, tools that need it can't act for that caller.\n\n" + ownHelp,
		Example: "  toolsrv secrets remove github --principal issued+ann",
		Args:    oneSecret, ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
		in.Name = args[0]
		return ask(ctx, &o, c, out, "secrets remove", in, func(w io.Writer, s *admin.OwnSecretChanged) error {
			_, err := fmt.Fprintf(w, "The secret %s of %s is removed.\n", oneLine(s.Secret.Name), oneLine(s.Secret.Principal))
			return err
		})
	})
	o.addExpected(cmd)
	addPrincipal(cmd, &in.Principal)
	return cmd
}

func addPrincipal(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "principal", "", "for an operator: the `caller` whose secret it is, such as issued+ann")
	completeFlag(cmd, "principal", cobra.NoFileCompletions)
}

// oneSecret takes the name of a secret.
func oneSecret(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("name one secret, as in %s github", cmd.CommandPath())
	}
	return nil
}
