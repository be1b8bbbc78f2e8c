package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/text"
)

// maxFound is how many repositories are shown, each of which is asked for its tags.
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
		Long: `List the repositories of a registry whose names have WORD in them, with their tags, the
newest versions first. REGISTRY may have the beginning of the names, too, as in
registry.example.com/acme.

Some registries list no repositories, such as ghcr.io. Of one repository, all of them
list the tags: name it whole.`,
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
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			registry, err := f.open(host)
			if err != nil {
				return err
			}
			defer registry.Close()
			done := showWaiting(cmd.ErrOrStderr(), "asking "+host)
			defer done()
			all := []found{}
			if ref, err := oci.ParseReference(host + "/" + prefix); err == nil && word == "" && ref.Tag == "" && ref.Digest == "" {
				if tags, err := registry.Tags(ctx, ref); err == nil && len(tags) > 0 {
					all = append(all, newFound(ref, tags))
				}
			}
			if len(all) == 0 {
				names, err := registry.Repositories(ctx)
				if err != nil {
					return err
				}
				names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) || !strings.Contains(name, word) })
				if len(names) > maxFound {
					return fmt.Errorf("%s has %d such repositories: name more of what you look for; up to %d are listed", host, len(names), maxFound)
				}
				for _, name := range names {
					ref, err := oci.ParseReference(host + "/" + name)
					if err != nil {
						continue // which no client could pull
					}
					tags, err := registry.Tags(ctx, ref)
					if err != nil {
						return err
					}
					all = append(all, newFound(ref, tags))
				}
			}
			done()
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

func newFound(ref oci.Reference, tags []string) found {
	slices.SortFunc(tags, func(a, b string) int { return cmp.Or(-oci.CompareTags(a, b), strings.Compare(a, b)) })
	return found{Repository: oci.Scheme + ref.String(), Tags: append([]string{}, tags...)}
}

// tagList names the first tags.
func tagList(tags []string) string {
	const most = 10
	if len(tags) > most {
		return strings.Join(tags[:most], ", ") + fmt.Sprintf(" and %d more", len(tags)-most)
	}
	return strings.Join(tags, ", ")
}
