package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/text"
)

// keyFlag is the flag --key of the commands that sign.
type keyFlag string

func (f *keyFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var((*fileFlag)(f), "key", "`file` with the private key that signs: PEM, or cosign.key with COSIGN_PASSWORD")
	completeFlag(cmd, "key", cobra.FixedCompletions([]cobra.Completion{"key", "pem"}, cobra.ShellCompDirectiveFilterFileExt))
}

// read reads the key.
func (f keyFlag) read() (*signature.Key, error) {
	return signature.ReadKey(string(f), func() string { return os.Getenv("COSIGN_PASSWORD") })
}

// signerFlags say whose signatures are valid.
type signerFlags struct{ signature.Signer }

func (f *signerFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&f.Key), "key", "PEM `file` with the public key that must have signed")
	flags.Var((*wordFlag)(&f.Issuer), "issuer", "`address` of the issuer that vouches for the signer's identity")
	flags.Var((*wordFlag)(&f.Subject), "subject", "the signer's `identity`; a * at the end matches everything that follows")
	flags.Var((*fileFlag)(&f.Root), "root", "trusted_root.json `file` with the authorities that certify the identity")
	completeFlag(cmd, "key", cobra.FixedCompletions([]cobra.Completion{"pub", "pem"}, cobra.ShellCompDirectiveFilterFileExt))
	completeFlag(cmd, "root", cobra.FixedCompletions([]cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt))
	for _, name := range []string{"issuer", "subject"} {
		completeFlag(cmd, name, cobra.NoFileCompletions)
	}
}

// addMinimum adds the flag --minimum for commands that refuse lower versions.
func (f *signerFlags) addMinimum(cmd *cobra.Command, minimum *string) {
	cmd.Flags().Var((*wordFlag)(minimum), "minimum", "lowest `version` to accept, according to its signed manifest")
	completeFlag(cmd, "minimum", cobra.NoFileCompletions)
}

// require makes a registry refuse artifacts that the signer has not signed, or whose version is below the minimum.
func (f *signerFlags) require(o *oci.Options) (err error) {
	if o.Minimum != "" {
		if err := oci.CheckVersion(o.Minimum); err != nil {
			return &usageError{fmt.Errorf("--minimum: %w", err)}
		}
		if !f.given() {
			return &usageError{errors.New("--minimum needs a signer, as with --key: without a signature, whoever replays an old version can also change its number")}
		}
	}
	if f.given() {
		o.Trust, err = f.trust()
	}
	return err
}

// given reports whether any of the flags is set.
func (f *signerFlags) given() bool { return f.Signer != signature.Signer{} }

// trust reads the files that the flags name.
func (f *signerFlags) trust() (*signature.Trust, error) {
	if err := f.Check(); err != nil {
		return nil, &usageError{fmt.Errorf("--key, or --issuer, --subject and --root: %w", err)}
	}
	return signature.Open([]signature.Signer{f.Signer})
}

// A signedBy says who has made a signature or an attestation. Its members are stable.
type signedBy struct {
	Key     string     `json:"key,omitempty"`
	Issuer  string     `json:"issuer,omitempty"`
	Subject string     `json:"subject,omitempty"`
	Time    *time.Time `json:"time,omitempty"`
}

func newSignedBy(by signature.By) *signedBy {
	s := &signedBy{Key: by.Key, Issuer: by.Issuer, Subject: by.Subject}
	if !by.Time.IsZero() {
		utc := by.Time.UTC()
		s.Time = &utc
	}
	return s
}

// A signed is what `sign --json` and `verify --json` print. Its members are stable.
type signed struct {
	Reference string    `json:"reference"`
	Digest    string    `json:"digest"`
	Version   string    `json:"version,omitempty"`
	By        *signedBy `json:"by,omitempty"`
}

func newSign() *cobra.Command {
	var f registryFlags
	var key keyFlag
	cmd := &cobra.Command{
		Use:   "sign REFERENCE --key FILE",
		Short: "Sign an artifact in an OCI registry",
		Long: `Sign the artifact that REFERENCE names, as 'cosign sign' does, and attach the signature to it. It
covers the artifact's digest: what the tag names later is not signed. 'push --sign' signs before
anybody can pull by the tag.

The key comes from openssl (ECDSA with P-256, Ed25519 or RSA), or from cosign, with its password in
COSIGN_PASSWORD.`,
		Example: `  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out acme.key
  openssl pkey -in acme.key -pubout -out acme.pub
  toolsrv sign oci://ghcr.io/acme/csv:1.2.0 --key acme.key`,
		Args: takes(1, "REFERENCE is missing: name what to sign"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := artifactArgument(args[0])
			if err != nil {
				return err
			}
			if key == "" {
				return &usageError{errors.New("--key is missing: name the file with the key that signs")}
			}
			k, err := key.read()
			if err != nil {
				return err
			}
			var digest string
			err = f.ask(cmd, ref.Host, "signing "+ref.String(), func(ctx context.Context, registry *oci.Registry) (err error) {
				digest, err = registry.Sign(ctx, ref, k)
				return err
			})
			if err != nil {
				return err
			}
			reference := oci.Scheme + ref.At(digest).String()
			if f.asJSON {
				return printJSON(cmd.OutOrStdout(), signed{Reference: reference, Digest: digest})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), reference)
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd)
	key.add(cmd)
	return cmd
}

func newVerify() *cobra.Command {
	var f registryFlags
	var s signerFlags
	cmd := &cobra.Command{
		Use:   "verify REFERENCE",
		Short: "Verify the signature of an artifact in an OCI registry",
		Long: `Verify that the artifact that REFERENCE names was signed with a key, or by an identity, as
[[source.signer]] in a configuration would. It accepts signatures of 'toolsrv sign' and of cosign.

An identity must be certified by an authority in the trusted root, such as Sigstore's
trusted_root.json, and its signature must be in a log of that root or carry its timestamp. The
command contacts only the registry. Without a key or an identity nothing is verified. --minimum
also refuses an older version, which somebody who controls the registry could bring back.

The command prints the reference with the artifact's digest, which is what was signed.`,
		Example: `  toolsrv verify oci://ghcr.io/acme/csv:1.2.0 --key acme.pub
  toolsrv verify oci://ghcr.io/acme/csv:1.2.0 --root trusted_root.json \
      --issuer https://token.actions.githubusercontent.com --subject 'https://github.com/acme/tools/*'`,
		Args: takes(1, "REFERENCE is missing: name what to verify"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := artifactArgument(args[0])
			if err != nil {
				return err
			}
			if !s.given() {
				return &usageError{errors.New("name who must have signed it: --key, or --issuer, --subject and --root")}
			}
			if err := s.require(&f.options); err != nil {
				return err
			}
			var a *oci.Artifact
			err = f.ask(cmd, ref.Host, "verifying "+ref.String(), func(ctx context.Context, registry *oci.Registry) (err error) {
				a, err = registry.Verify(ctx, ref)
				return err
			})
			if err != nil {
				return err
			}
			reference := oci.Scheme + ref.At(a.Manifest).String()
			if f.asJSON {
				return printJSON(cmd.OutOrStdout(), signed{reference, a.Manifest, text.Clip(a.Version(), 100), newSignedBy(a.By)})
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is signed by %s.\n", ref, a.By)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), reference)
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd)
	s.add(cmd)
	s.addMinimum(cmd, &f.options.Minimum)
	return cmd
}

// An attested is what `inspect --json` says about an artifact in addition to its module. Its members are stable.
type attested struct {
	Reference    string          `json:"reference"`
	Source       *attachedSource `json:"source,omitempty"`
	Attestations []attestation   `json:"attestations"`
}

// An attachedSource is the source of a script's module that is attached to its artifact.
type attachedSource struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	// Why says why the registry can't provide it.
	Why string `json:"why,omitempty"`
}

// An attestation is what somebody says about an artifact: its signature, how it was built, or what it contains.
type attestation struct {
	Type string `json:"type"`
	// Verified is whether the required signer has signed it. By names the signer, and Why says why the signature is not accepted.
	Verified bool      `json:"verified"`
	By       *signedBy `json:"by,omitempty"`
	Why      string    `json:"why,omitempty"`
}

func newAttested(reference string, all []oci.Attestation, checked bool) *attested {
	a := &attested{Reference: reference, Attestations: []attestation{}}
	for _, one := range all {
		shown := attestation{Type: text.Clip(one.PredicateType, 300), Verified: checked && one.Wrong == nil}
		switch {
		case one.Wrong != nil:
			shown.Why = one.Wrong.Error()
		case checked:
			shown.By = newSignedBy(one.By)
		default:
			shown.Why = "nothing says who must have signed it: name a signer, as with --key"
		}
		a.Attestations = append(a.Attestations, shown)
	}
	return a
}

// print prints rows of a report.
func (a *attested) print(row func(cells ...string)) {
	row("artifact", a.Reference)
	switch s := a.Source; {
	case s == nil:
	case s.Why != "":
		row("source", "not there: "+s.Why)
	default:
		row("source", text.RoundSize(s.Size)+", which `toolsrv pull --source DIR` pulls")
	}
	for _, one := range a.Attestations {
		kind, word := one.Type, "attestation"
		if kind == signature.PredicateType {
			kind, word = "", "signature"
		}
		state := "not verified: " + one.Why
		if one.Verified {
			state = "verified: by " + signature.By{Key: one.By.Key, Issuer: one.By.Issuer, Subject: one.By.Subject}.String()
		}
		if kind == "" {
			row(word, state)
		} else {
			row(word, kind, state)
		}
	}
}
