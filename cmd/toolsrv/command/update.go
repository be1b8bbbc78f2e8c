package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// exitWouldChange is the exit code of `toolsrv update --dry-run` if something would change.
const exitWouldChange = 3

// An updated is what `toolsrv update --json` prints about a source that changes. Its members are stable.
type updated struct {
	OCI   string `json:"oci"`
	Tag   string `json:"tag"`
	Found string `json:"found"` // the matching tag that is found now
	// From and To are digests of artifacts, and sizes of modules in bytes.
	From     string `json:"from"`
	To       string `json:"to"`
	FromSize int64  `json:"from_size"`
	ToSize   int64  `json:"to_size"`
	// Tools are the tools that are added, removed or changed. Needs are the needs that are added or removed.
	Tools []updatedTool `json:"tools"`
	Needs []updatedNeed `json:"needs"`
	// Unknown says that tools were not compared, because a module must be run to know its tools.
	Unknown bool `json:"unknown,omitempty"`
}

type updatedTool struct {
	Path   string   `json:"path"`
	Change string   `json:"change"` // "added", "removed" or "changed"
	What   []string `json:"what,omitempty"`
}

type updatedNeed struct {
	Need   string `json:"need"`
	Change string `json:"change"` // "added" or "removed"
}

func newUpdate() *cobra.Command {
	var l locking
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Lock what the registries have now, and show what changes",
		Long: `Compare toolsrv.lock with what the tags and ranges of the configuration are now: which tools come,
go or change, what they need, and their sizes. Everything is pulled and compared before the first
line is printed; only then is the file written. Nothing is run. A server serves the locked content
from its next reload on.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something would change (--dry-run).`,
		Example: `  toolsrv update --dry-run
  toolsrv update`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := []updated{}
			lock, path, err := l.each(cmd, func(ctx context.Context, s config.Source) (string, error) {
				if s.Locked == "" {
					return "", nil // a source that isn't locked follows its tag
				}
				u, err := compareLocked(ctx, cmd.ErrOrStderr(), s)
				if err != nil {
					return "", err
				}
				if u.From != u.To {
					all = append(all, *u)
				}
				return u.To, nil
			})
			if err == nil && len(lock) == 0 {
				err = errNotLocked
			}
			if err != nil {
				return err
			}
			if l.asJSON {
				err = printJSON(cmd.OutOrStdout(), all)
			} else {
				err = printUpdates(cmd.OutOrStdout(), all)
			}
			switch {
			case err != nil:
				return err
			case dryRun && len(all) > 0:
				return &exitError{code: exitWouldChange}
			case dryRun || len(all) == 0:
				return nil
			}
			return l.write(cmd, path, lock)
		},
	}
	l.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change, and write nothing")
	return cmd
}

// compareLocked compares the locked artifact of a source with the current one.
func compareLocked(ctx context.Context, told io.Writer, s config.Source) (*updated, error) {
	registries, err := openSource(s)
	if err != nil {
		return nil, err
	}
	defer registries.Close()
	u := &updated{OCI: s.OCI, Tag: s.Tag, From: s.Locked, Tools: []updatedTool{}, Needs: []updatedNeed{}}
	if u.To, u.Found, err = registries.Origin().Find(ctx, registries.Origin().Repository, s.Tag); err != nil || u.From == u.To {
		return u, err
	}
	s.Signers = nil // of the locked artifact
	old, err := openSource(s)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	before, fromSize, err := manifestOf(ctx, told, old, u.From)
	if errors.Is(err, oci.ErrNotFound) { // the locked artifact is gone; an update is the remedy
		u.Unknown, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	now, toSize, err := manifestOf(ctx, told, registries, u.To)
	if err != nil {
		return nil, err
	}
	u.FromSize, u.ToSize = fromSize, toSize
	if before == nil || now == nil {
		u.Unknown = true
		return u, nil
	}
	u.compare(before, now)
	return u, nil
}

// manifestOf pulls a module, and returns the manifest in it, or nil if there is none.
func manifestOf(ctx context.Context, told io.Writer, registries *oci.Peers, digest string) (*manifest.Manifest, int64, error) {
	var module bytes.Buffer
	var pulled *oci.Artifact
	err := askEach(ctx, told, registries, digest, func(ctx context.Context, registry *oci.Registry, ref oci.Reference) (err error) {
		module.Reset()
		pulled, err = registry.Pull(ctx, ref, &module)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	report, err := toolfile.Inspect(module.Bytes())
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", registries.Origin().Repository.At(digest), err)
	}
	return report.Manifest, pulled.Size, nil
}

// compare adds the differences between two manifests.
func (u *updated) compare(before, now *manifest.Manifest) {
	old, fresh := toolsByPath(before), toolsByPath(now)
	for _, path := range slices.Sorted(maps.Keys(union(old, fresh))) {
		was, had := old[path]
		is, has := fresh[path]
		switch {
		case !had:
			u.Tools = append(u.Tools, updatedTool{Path: path, Change: "added"})
		case !has:
			u.Tools = append(u.Tools, updatedTool{Path: path, Change: "removed"})
		default:
			if what := changedIn(was, is); len(what) > 0 {
				u.Tools = append(u.Tools, updatedTool{Path: path, Change: "changed", What: what})
			}
		}
	}
	needed, needs := needsOf(before), needsOf(now)
	for _, need := range slices.Sorted(maps.Keys(union(needed, needs))) {
		switch _, had := needed[need]; {
		case !had:
			u.Needs = append(u.Needs, updatedNeed{need, "added"})
		case !needs[need]:
			u.Needs = append(u.Needs, updatedNeed{need, "removed"})
		}
	}
}

func union[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func toolsByPath(m *manifest.Manifest) map[string]*manifest.Tool {
	all := map[string]*manifest.Tool{}
	for i := range m.Tools {
		tool := wasmtools.Tool{Namespace: m.Namespace, Name: m.Tools[i].Name}
		all[tool.Path()] = &m.Tools[i]
	}
	return all
}

// changedIn returns the members of a manifest in which two tools differ.
func changedIn(a, b *manifest.Tool) (what []string) {
	for _, c := range []struct {
		member string
		same   bool
	}{
		{"title", a.Title == b.Title},
		{"description", a.Description == b.Description},
		{"annotations", reflect.DeepEqual(a.Annotations, b.Annotations)},
		{"parameters", bytes.Equal(a.Parameters, b.Parameters)},
		{"result", bytes.Equal(a.Result, b.Result)},
	} {
		if !c.same {
			what = append(what, c.member)
		}
	}
	return what
}

// needsOf returns the needs of a manifest, a line for each.
func needsOf(m *manifest.Manifest) map[string]bool {
	all := map[string]bool{}
	add := func(needs wasmtools.Needs) {
		for name, need := range needs {
			if len(need.Words) == 0 {
				all[name] = true
			}
			for _, word := range need.Words {
				all[name+" "+word] = true
			}
		}
	}
	add(m.Needs)
	for i := range m.Tools {
		add(m.Tools[i].Needs)
	}
	return all
}

// printUpdates prints the changes for people.
func printUpdates(w io.Writer, all []updated) error {
	if len(all) == 0 {
		_, err := io.WriteString(w, "Nothing has changed since it was locked.\n")
		return err
	}
	var b strings.Builder
	for _, u := range all {
		fmt.Fprintf(&b, "%s%s:%s is %s now\n", oci.Scheme, u.OCI, u.Tag, oneLine(u.Found))
		fmt.Fprintf(&b, "  digest  %s to %s\n", shortDigest(u.From), shortDigest(u.To))
		fmt.Fprintf(&b, "  size    %s to %s\n", text.RoundSize(u.FromSize), text.RoundSize(u.ToSize))
		for _, t := range u.Tools {
			fmt.Fprintf(&b, "  tool    %s is %s", oneLine(t.Path), t.Change)
			if len(t.What) > 0 {
				fmt.Fprintf(&b, ": %s", strings.Join(t.What, ", "))
			}
			b.WriteByte('\n')
		}
		for _, n := range u.Needs {
			fmt.Fprintf(&b, "  need    %s is %s\n", oneLine(text.Clip(n.Need, 200)), n.Change)
		}
		if u.Unknown {
			b.WriteString("  the tools can't be compared without running a module, or the locked content no longer exists\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func shortDigest(digest string) string {
	return text.ShortDigest(strings.TrimPrefix(digest, "sha256:"))
}
