package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

func newInspect() *cobra.Command {
	var describe bool
	var with []string
	var f registryFlags
	var s signerFlags
	cmd := &cobra.Command{
		Use:   "inspect FILE|REFERENCE",
		Short: "Show what is in a tool file, without running it",
		Long: `Show what is in FILE: its manifest, imports and exports, memory, the WebAssembly features that it
uses, whether its instances reset in place (which makes calls fast), the sizes of its sections, and
its digest. If its tools need something that an operator has to grant, the output ends with the
[[grant]] to paste into the configuration.

For an artifact in a registry, such as oci://ghcr.io/acme/csv:1.2.0, it also shows whether the
source was pushed with it, and what is attested: signatures, how it was built (SLSA), what it
contains (SBOM). With --key, or with --issuer, --subject and --root, it says which of these are
verified.

Nothing is run, unless --describe asks for it. If FILE is a script, inspect shows the tool file
that it becomes, and runs it in the sandbox to learn its manifest. 'toolsrv check' says whether a
server accepts the file.`,
		Example: `  toolsrv inspect math.wasm
  toolsrv inspect --json math.wasm
  toolsrv inspect oci://ghcr.io/acme/csv:1.2.0 --key acme.pub`,
		Args: fileAnd(0, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			var content []byte
			var made *workbench.Made
			var about *attested
			var err error
			if strings.HasPrefix(args[0], oci.Scheme) {
				content, about, err = inspectArtifact(ctx, args[0], &f, &s, cmd.ErrOrStderr())
			} else if s.given() {
				err = &usageError{errors.New("only artifacts in registries have signers: name one, such as oci://ghcr.io/acme/csv:1.2.0")}
			} else {
				content, made, err = workbench.Read(ctx, args[0], with)
			}
			if err != nil {
				return err
			}
			report, err := toolfile.Inspect(content)
			if err == nil && (describe || made != nil) {
				err = describeInto(ctx, report, content, args[0], cmd.ErrOrStderr())
			}
			if isAuthors(err) {
				return err
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if f.asJSON {
				return printJSON(cmd.OutOrStdout(), struct {
					*toolfile.Report
					Artifact *attested `json:"artifact,omitempty"`
				}{report, about})
			}
			if err := printReport(cmd.OutOrStdout(), args[0], report, about); err != nil || report.Manifest == nil {
				return err
			}
			return printGrants(cmd.OutOrStdout(), report.Manifest)
		},
		ValidArgsFunction: completeFiles,
	}
	f.add(cmd)
	s.add(cmd)
	cmd.Flags().BoolVar(&describe, "describe", false, "run the export toolsrv_describe, in the sandbox, if no manifest is embedded")
	addWithFlag(cmd, &with)
	return cmd
}

// inspectArtifact pulls a module, and returns it with its attestations.
func inspectArtifact(ctx context.Context, typed string, f *registryFlags, s *signerFlags, stderr io.Writer) ([]byte, *attested, error) {
	ref, err := artifactArgument(typed)
	if err != nil {
		return nil, nil, err
	}
	var trust *signature.Trust
	if s.given() {
		if trust, err = s.trust(); err != nil {
			return nil, nil, err
		}
	}
	registry, err := f.open(ref.Host) // unsigned modules are inspected, too
	if err != nil {
		return nil, nil, err
	}
	defer registry.Close()
	done := showWaiting(stderr, "pulling "+ref.String())
	defer done()
	var module bytes.Buffer
	pulled, err := registry.Pull(ctx, ref, &module)
	if err != nil {
		return nil, nil, err
	}
	all, err := registry.Attestations(ctx, ref.At(pulled.Manifest), trust)
	if err != nil {
		return nil, nil, err
	}
	about := newAttested(oci.Scheme+ref.At(pulled.Manifest).String(), all, trust != nil)
	if size, err := registry.SourceSize(ctx, ref, pulled); !errors.Is(err, oci.ErrNoSource) {
		about.Source = &attachedSource{Digest: pulled.Source(), Size: size}
		if err != nil {
			about.Source.Why = err.Error()
		}
	}
	return module.Bytes(), about, nil
}

// describeInto runs a module to get its manifest, if none is embedded.
func describeInto(ctx context.Context, r *toolfile.Report, content []byte, file string, stderr io.Writer) error {
	if r.Manifest != nil || r.ManifestError != "" {
		return nil
	}
	tools, err := core.OpenBare(ctx, config.Default(), 1, newLogger(stderr, slog.LevelWarn))
	if err != nil {
		return err
	}
	defer tools.Close()
	m, err := toolfile.Load(tools.Engine, content, toolfile.Place{Source: file})
	if err != nil {
		return err
	}
	defer m.Close()
	done := showWaiting(stderr, "asking "+file+" for its manifest")
	defer done()
	if err := m.Describe(ctx); err != nil {
		return err
	}
	r.Manifest, r.Described, r.SDK = m.Manifest(), true, m.Manifest().SDK
	return nil
}

// printReport prints a report for people, with the attestations if the file is an artifact.
func printReport(w io.Writer, file string, r *toolfile.Report, about *attested) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = oneLine(cells[i])
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	row("file", file)
	size := text.RoundSize(r.Size)
	if r.Size >= 1<<10 {
		size += fmt.Sprintf(" (%d bytes)", r.Size)
	}
	row("size", size)
	row("digest", "sha256 "+r.Digest)
	if about != nil {
		about.print(row)
	}
	printManifest(row, r)
	switch {
	case r.Refused != "":
		row("refused", r.Refused)
	case r.ResetsInPlace:
		row("reset", "in place")
	default:
		row("reset", "with a new instance for each call: "+r.NoReset)
	}
	features := strings.Join(r.Features, ", ")
	if features == "" {
		features = "none beyond WebAssembly 1.0"
	}
	row("features", features)
	for _, m := range r.Memories {
		row("memory", limitText(m, func(n uint64) string { return text.RoundSize(n) }))
	}
	for _, t := range r.Tables {
		row("table", limitText(t, func(n uint64) string { return fmt.Sprintf("%d elements", n) }))
	}
	for _, i := range r.Imports {
		row("import", i.Module+" "+i.Name, i.Kind+" "+i.Type)
	}
	printLeft(row, "import", r.Left.Imports, "")
	for _, e := range r.Exports {
		row("export", e.Name, e.Kind+" "+e.Type)
	}
	printLeft(row, "export", r.Left.Exports, "")
	for _, s := range r.Sections {
		name := s.Name
		if s.Custom {
			name = "custom " + name
		}
		row("section", name, text.RoundSize(s.Size))
	}
	printLeft(row, "section", r.Left.Sections, text.RoundSize(r.Left.SectionsSize))
	return table.Flush()
}

// printManifest prints what the manifest says, or why there is none.
func printManifest(row func(cells ...string), r *toolfile.Report) {
	switch {
	case r.ManifestError != "":
		row("manifest", "broken: "+r.ManifestError)
		return
	case r.Manifest == nil:
		text := "none: embed one with `toolsrv pack`"
		for _, e := range r.Exports {
			if e.Name == "toolsrv_describe" {
				text = "not embedded, but toolsrv_describe returns one: --describe runs it, `toolsrv pack` embeds what it returns"
			}
		}
		row("manifest", text)
		return
	case r.Described:
		row("manifest", "not embedded, but returned by toolsrv_describe")
	default:
		row("manifest", "embedded")
	}
	m := r.Manifest
	for _, c := range [][2]string{{"namespace", m.Namespace}, {"version", m.Version}, {"sdk", m.SDK}, {"engine", m.Engine}} {
		if c[1] != "" {
			row(c[0], c[1])
		}
	}
	for _, need := range lacking.Each(lacking.All(m.Needs)) {
		row("needs", "all tools", need)
	}
	for _, t := range m.Tools {
		tool := wasmtools.Tool{Namespace: m.Namespace, Name: t.Name}
		row("tool", tool.Path(), firstLine(t.Description))
		if t.Title != "" {
			row("title", tool.Path(), t.Title)
		}
		if said := annotationsText(t.Annotations); said != "" {
			row("annotations", tool.Path(), said)
		}
		for _, need := range lacking.Each(lacking.All(t.Needs)) {
			row("needs", tool.Path(), need)
		}
		for _, icon := range t.Icons {
			row("icon", tool.Path(), text.Short(icon.Src))
		}
	}
}

// printGrants prints the grants that the tools of a manifest need.
func printGrants(w io.Writer, m *manifest.Manifest) error {
	var grants []string
	add := func(match string, needs wasmtools.Needs) {
		if len(needs) > 0 {
			grants = append(grants, text.Escape(broker.Suggest(match, needs, builtin.Kinds())))
		}
	}
	shared := m.Needs
	if m.Namespace != "" && len(m.Tools) > 1 {
		add(m.Namespace+"/*", shared)
		shared = wasmtools.Needs{}
	}
	for _, t := range m.Tools {
		tool := wasmtools.Tool{Namespace: m.Namespace, Name: t.Name}
		add(strings.TrimPrefix(tool.Path(), "/"), manifest.Joined(shared, t.Needs))
	}
	if grants == nil {
		return nil
	}
	hint := "To grant all of this, put this into the configuration, with your own values:"
	if m.Namespace == "" {
		hint = "To grant all of this, put this into the configuration, with your own values and the file's folder in front of each match:"
	}
	_, err := fmt.Fprintf(w, "\n%s\n\n%s", hint, strings.Join(grants, "\n"))
	return err
}

// annotationsText describes annotations, or returns "" if they say nothing.
func annotationsText(a wasmtools.Annotations) string {
	var said []string
	for _, hint := range []struct {
		name  string
		value *bool
	}{{"readOnly", a.ReadOnly}, {"destructive", a.Destructive}, {"idempotent", a.Idempotent}, {"openWorld", a.OpenWorld}} {
		if hint.value != nil {
			said = append(said, fmt.Sprintf("%s: %t", hint.name, *hint.value))
		}
	}
	return strings.Join(said, ", ")
}

func printLeft(row func(cells ...string), what string, left int, size string) {
	if left > 0 {
		row(what, fmt.Sprintf("and %d more", left), size)
	}
}

func limitText(l toolfile.Limit, unit func(uint64) string) string {
	text := unit(l.Min)
	if l.Max != nil {
		text += ", up to " + unit(*l.Max)
	}
	if l.Imported {
		text += ", imported"
	}
	return text
}
