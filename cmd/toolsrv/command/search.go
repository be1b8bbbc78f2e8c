package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/text"
)

// maxFound is how many repositories are shown, since the tags of each take a request.
const maxFound = 100

// found is a repository of `search --json`. Its members are stable.
type found struct {
	Repository string   `json:"repository"`
	Tags       []string `json:"tags"`
}

func newSearch() *cobra.Command {
	var f registryFlags
	cmd := &cobra.Command{
		Use:   "search REGISTRY [WORD]",
		Short: "List what a registry of OCI has, with its tags",
		Long: `List the repositories of a registry whose names contain WORD, with their tags, the newest versions
first. REGISTRY may include the beginning of the names, as in registry.example.com/acme.

Some registries, such as ghcr.io, don't list repositories. All of them list the tags of a
repository if you give its full name.`,
		Example: `  toolsrv search registry.example.com csv
  toolsrv search ghcr.io/acme/csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			return takes(min(max(len(args), 1), 2), "REGISTRY is missing: name one")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if scheme, rest, is := strings.Cut(args[0], "://"); is && scheme+"://" != oci.Scheme {
				return fmt.Errorf("REGISTRY is a name, not an address: write toolsrv search %s, with --plain-http for one without TLS", text.Short(rest))
			}
			host, prefix, _ := strings.Cut(strings.TrimPrefix(args[0], oci.Scheme), "/")
			word := ""
			if len(args) > 1 {
				word = args[1]
			}
			var all []found
			err := f.ask(cmd, host, "asking "+host, func(ctx context.Context, registry *oci.Registry) (err error) {
				all, err = search(ctx, registry, host, prefix, word)
				return err
			})
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			if len(all) == 0 {
				_, err := io.WriteString(cmd.OutOrStdout(), "Nothing was found.\n")
				return err
			}
			rows := [][]string{{"REPOSITORY", "TAGS"}}
			for _, r := range all {
				rows = append(rows, []string{r.Repository, tagList(r.Tags)})
			}
			return table(cmd.OutOrStdout(), rows)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd)
	return cmd
}

// search returns the tags of the repository whose name is prefix, if there is one and word is empty. Otherwise it returns the tags of all
// repositories whose names begin with prefix and contain word.
func search(ctx context.Context, registry *oci.Registry, host, prefix, word string) ([]found, error) {
	if ref, err := oci.ParseReference(host + "/" + prefix); err == nil && word == "" && ref.Tag == "" && ref.Digest == "" {
		if tags, err := registry.Tags(ctx, ref); err == nil && len(tags) > 0 {
			return []found{newFound(ref, tags)}, nil
		}
	}
	names, err := registry.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) || !strings.Contains(name, word) })
	slices.Sort(names)
	if len(names) > maxFound {
		return nil, fmt.Errorf("%s has %d such repositories: give more of the name; up to %d are listed", host, len(names), maxFound)
	}
	all := []found{}
	for _, name := range names {
		ref, err := oci.ParseReference(host + "/" + name)
		if err != nil {
			continue // no client could pull tags of such names
		}
		tags, err := registry.Tags(ctx, ref)
		if err != nil {
			return nil, err
		}
		all = append(all, newFound(ref, tags))
	}
	return all, nil
}

// attached matches tags that are not versions: if a registry can't list attachments of an artifact, such as signatures, clients store them under such
// tags.
var attached = regexp.MustCompile(`^sha256-[0-9a-f]{64}(\.(sig|att|sbom))?$`)

func newFound(ref oci.Reference, tags []string) found {
	tags = slices.DeleteFunc(tags, attached.MatchString)
	slices.SortFunc(tags, func(a, b string) int { return cmp.Or(-oci.CompareTags(a, b), strings.Compare(a, b)) })
	return found{Repository: oci.Scheme + ref.String(), Tags: append([]string{}, tags...)}
}

// tagList returns a text with the first tags.
func tagList(tags []string) string {
	const most = 10
	if len(tags) > most {
		return strings.Join(tags[:most], ", ") + fmt.Sprintf(" and %d more", len(tags)-most)
	}
	return strings.Join(tags, ", ")
}
