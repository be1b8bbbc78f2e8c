package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/lockfile"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/text"
)

// locking holds the flags of `toolsrv lock` and `toolsrv update`.
type locking struct {
	config string
	asJSON bool
}

func (l *locking) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print a JSON array")
	cmd.Flags().Var((*fileFlag)(&l.config), "config", "configuration `file` (default toolsrv.toml)")
	completeFlag(cmd, "config", cobra.FixedCompletions([]cobra.Completion{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
}

// moving returns the sources of the configuration that can be locked, whether or not they already are, and the path of the lock.
func (l *locking) moving() (sources []config.Source, path string, err error) {
	file := l.config
	if file == "" {
		file = defaultConfig
	}
	c, err := config.Load(file)
	if err != nil {
		return nil, "", err
	}
	for _, s := range c.Sources {
		if s.OCI != "" && !strings.Contains(s.Tag, ":") {
			sources = append(sources, s)
		}
	}
	if len(sources) == 0 {
		return nil, "", fmt.Errorf("%s has no registry source with a tag or a range, so there is nothing to lock", file)
	}
	return sources, lockfile.Path(file), nil
}

// each calls digest for each source of the configuration that can be locked, and leaves out sources without a digest. It returns the resulting lock
// and its path.
func (l *locking) each(cmd *cobra.Command, digestOf func(ctx context.Context, s config.Source) (string, error)) (lock lockfile.Lock, path string, err error) {
	sources, path, err := l.moving()
	if err != nil {
		return nil, "", err
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	for _, s := range sources {
		digest, err := digestOf(ctx, s)
		if err != nil {
			return nil, "", err
		}
		if digest != "" {
			lock = append(lock, lockfile.Entry{OCI: s.OCI, Tag: s.Tag, Digest: digest})
		}
	}
	return lock, path, nil
}

// write writes a lock.
func (l *locking) write(cmd *cobra.Command, path string, lock lockfile.Lock) error {
	if err := lockfile.Write(path, lock); err != nil {
		return fmt.Errorf("write what is locked: %w", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Wrote %s: reload the server to serve it.\n", text.Escape(path))
	return nil
}

// askLimit is how long all registries of a source may take. A mirror gets a share of it, so that there is time for the others.
const askLimit = 15 * time.Minute

// openSource opens the registry of a source, and its mirrors. Artifacts from any of these need the signatures that the source requires. The caller
// closes the result.
func openSource(s config.Source) (*oci.Peers, error) {
	o, err := core.RegistryOptions(s)
	if err != nil {
		return nil, err
	}
	return oci.OpenPeers(o.Repository, o.Mirrors, o.Registry, 0)
}

// askEach calls ask for an artifact with a digest: first with each mirror, and then with the origin. It writes to told which mirrors failed. If
// askEach itself fails, it writes nothing there, since its error names the mirrors.
func askEach(ctx context.Context, told io.Writer, p *oci.Peers, digest string, ask func(ctx context.Context, registry *oci.Registry, ref oci.Reference) error) error {
	var passed strings.Builder
	failed := func(mirror oci.Reference, err error) {
		fmt.Fprintf(&passed, "The mirror %s was skipped: %s\n", mirror, text.Escape(err.Error()))
	}
	err := p.Each(ctx, askLimit, failed, func(ctx context.Context, one *oci.Peer) (again bool, err error) {
		return true, ask(ctx, one.Registry, one.Repository.At(digest))
	})
	if err == nil {
		_, err = io.WriteString(told, passed.String())
	}
	return err
}

// findNow returns the current artifact of a source's tag or range, after verifying its signature: a locked artifact is served without another
// verification.
func findNow(ctx context.Context, told io.Writer, s config.Source) (digest, tag string, err error) {
	p, err := openSource(s)
	if err != nil {
		return "", "", err
	}
	defer p.Close()
	digest, tag, err = p.Origin().Find(ctx, p.Origin().Repository, s.Tag)
	if err == nil && len(s.Signers) > 0 {
		err = askEach(ctx, told, p, digest, func(ctx context.Context, registry *oci.Registry, ref oci.Reference) error {
			_, err := registry.Verify(ctx, ref)
			return err
		})
	}
	return digest, tag, err
}

func newLock() *cobra.Command {
	var l locking
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Lock the tools that a configuration takes from registries, by their digests",
		Long: `Write the current digests of the tags and ranges in a configuration's registries into toolsrv.lock
beside it (NAME.lock for NAME.toml). From its next reload on, a server serves these, whatever
happens to the tags. What is already locked stays as it is: 'toolsrv update' moves it.

Keep the file with the configuration, in version control. A source that is not in it
follows its tag.`,
		Example: `  toolsrv lock
  toolsrv lock --config /etc/toolsrv/toolsrv.toml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lock, path, err := l.each(cmd, func(ctx context.Context, s config.Source) (string, error) {
				if s.Locked != "" {
					return s.Locked, nil
				}
				digest, _, err := findNow(ctx, cmd.ErrOrStderr(), s)
				return digest, err
			})
			if err != nil {
				return err
			}
			if err := l.write(cmd, path, lock); err != nil {
				return err
			}
			if l.asJSON {
				return printJSON(cmd.OutOrStdout(), lock)
			}
			for _, e := range lock {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s%s:%s  %s\n", oci.Scheme, e.OCI, e.Tag, e.Digest); err != nil {
					return err
				}
			}
			return nil
		},
	}
	l.add(cmd)
	return cmd
}

// errNotLocked means that nothing is locked yet, so nothing can be updated.
var errNotLocked = errors.New("nothing is locked yet: run toolsrv lock")
