package command

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// tested is what `toolsrv test --json` prints. Its members are stable.
type tested struct {
	File     string         `json:"file"`
	Passed   int            `json:"passed"`
	Failed   int            `json:"failed"`
	Examples []testedResult `json:"examples"`
}

type testedResult struct {
	toolfile.Trial
	OK           bool    `json:"ok"`
	Milliseconds float64 `json:"milliseconds"`
}

// test holds the flags of `toolsrv test`.
type test struct {
	fileFlags
	asJSON bool
}

func newTest() *cobra.Command {
	t := test{fileFlags: fileFlags{logLevel: slog.LevelWarn}}
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Try the examples in a file's manifest",
		Long: `Call the tools of FILE with the arguments of the examples in its manifest, in the
sandbox. FILE is a tool file, a script, or the folder of a project, which is built first.
The arguments must fit the tool's schema, and the result its result schema. If the
example has a result, the tool's must equal it as a JSON value: the order of members
makes no difference, nor do 1 and 1.0.

Exit codes: 0 no example failed, 1 one failed or the file could not be loaded, 2 wrong usage.`,
		Example: `  toolsrv test math.wasm
  toolsrv test --json math.wasm`,
		Args:              fileAnd(0, ""),
		RunE:              t.run,
		ValidArgsFunction: completeFiles,
	}
	t.add(cmd)
	cmd.Flags().BoolVar(&t.asJSON, "json", false, "print a JSON object")
	return cmd
}

func (t *test) run(cmd *cobra.Command, args []string) error {
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	file, err := t.open(ctx, args[0], stderr)
	if err != nil {
		return err
	}
	defer file.Close()
	all := tested{File: args[0], Examples: []testedResult{}}
	file.TryExamples(ctx, func(trial toolfile.Trial) {
		r := testedResult{trial, trial.Problem == "", float64(trial.Took.Microseconds()) / 1e3}
		if r.OK {
			all.Passed++
		} else {
			all.Failed++
		}
		all.Examples = append(all.Examples, r)
		if !t.asJSON && err == nil {
			err = r.print(stdout)
		}
	})
	if t.asJSON {
		err = printJSON(stdout, all)
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted: not all examples were tried")
	case all.Failed > 0:
		if !t.asJSON {
			tellMissing(stderr, file.Tools()...)
		}
		return fmt.Errorf("%d of %d examples failed", all.Failed, len(all.Examples))
	}
	all.tellNone(stderr, file.Tools())
	return nil
}

// print prints a line, and more if the example failed.
func (r *testedResult) print(w io.Writer) error {
	word := "ok  "
	if !r.OK {
		word = "FAIL"
	}
	text := fmt.Sprintf("%s  %s, example %d (%s)\n", word, r.Path, r.Number, timeText(r.Took))
	if !r.OK {
		text += fmt.Sprintf("      %s\n      arguments: %s\n", oneLine(r.Problem), shorten(string(r.Arguments)))
		if r.Want != nil {
			text += fmt.Sprintf("      want:      %s\n", shorten(string(r.Want)))
		}
		if r.Got != nil {
			text += fmt.Sprintf("      got:       %s\n", shorten(string(r.Got)))
		}
		if failed, ok := errors.AsType[*wasmtools.Error](r.Err); ok && failed.Err != nil { // such as the trace of a trap
			text += "      cause:     " + shorten(failed.Err.Error()) + "\n"
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// tellNone prints which tools have no examples, so that nobody takes them for tested.
func (t *tested) tellNone(w io.Writer, tools []*wasmtools.Tool) {
	without := ""
	for _, tool := range tools {
		if len(tool.Examples) == 0 {
			without += " " + tool.Path()
		}
	}
	switch {
	case len(t.Examples) == 0:
		fmt.Fprintf(w, "%s has no examples: add some, as \"examples\" in the manifest or with the SDK\n", oneLine(t.File))
	case without != "":
		fmt.Fprintf(w, "without an example: %s\n", shorten(without))
	}
}

// shorten returns foreign text on one line, cut to a readable length.
func shorten(s string) string {
	return text.Clip(oneLine(s), 1000)
}
