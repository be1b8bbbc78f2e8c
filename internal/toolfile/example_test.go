package toolfile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestTryExamples tries examples of a tool that returns its arguments.
func TestTryExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, arguments, want string // want is "" if the example has no result
		says                  string // a part of the problem; "" if there is none
	}{
		{"the same", `{"a":1}`, `{"a":1}`, ""},
		{"the same value", `{"a":1,"b":[1e2,"\u0041"]}`, ` { "b" : [ 100.0 , "A" ] , "a":1.0 }`, ""},
		{"no result named", `{"a":1}`, "", ""},
		{"the default is filled in", `{}`, `{"a":7}`, ""},
		{"a number", `{"a":1,"b":{"c":[1,2]}}`, `{"a":1,"b":{"c":[1,3]}}`, "at b.c.1: got 2, want 3"},
		{"a type", `{"a":1}`, `[1]`, `got {"a":1}, want [1]`},
		{"a member is missing", `{"a":1}`, `{"a":1,"z":2}`, `"z" is missing`},
		{"a member too many", `{"a":1,"y":2,"x":1}`, `{"a":1}`, `"x" is unexpected`},
		{"items", `{"a":1,"b":[1,2]}`, `{"a":1,"b":[1]}`, "at b: got 2 items, want 1"},
		{"arguments that don't fit", `{"a":"x"}`, `{"a":"x"}`, "invalid_arguments: the arguments do not fit the tool's schema: a: Input should be a valid integer"},
		{"a result that does not fit its schema", `{"a":101}`, `{"a":101}`, "the result does not fit its own schema: a: Input should be less than or equal to 100"},
	} {
		example := fmt.Sprintf(`"examples":[{"arguments":%s}],"parameters"`, c.arguments)
		if c.want != "" {
			example = fmt.Sprintf(`"examples":[{"arguments":%s,"result":%s}],"parameters"`, c.arguments, c.want)
		}
		text := strings.NewReplacer(`"parameters"`, example, `{"type":"object"}`,
			`{"type":"object","properties":{"a":{"type":"integer","default":7}}},"result":{"properties":{"a":{"maximum":100}}}`).Replace(manifestText(t, "", "echo"))
		m := built(t, sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/echo"), text), limits.Limits{})
		var trials []toolfile.Trial
		m.TryExamples(t.Context(), func(trial toolfile.Trial) { trials = append(trials, trial) })
		if len(trials) != 1 {
			t.Fatalf("%s: got %d trials", c.name, len(trials))
		}
		got := trials[0]
		if (c.says == "") != (got.Problem == "") || !strings.Contains(got.Problem, c.says) || got.Path != "/echo" || got.Number != 1 || got.Took <= 0 {
			t.Errorf("%s: got %+v, want the problem %q", c.name, got, c.says)
		}
	}
}

// TestTryExamplesStops: TryExamples ends with its context, and reports each failure.
func TestTryExamplesStops(t *testing.T) {
	t.Parallel()
	text := strings.Replace(manifestText(t, "", "spin"), `"parameters"`, `"examples":[{"arguments":{}},{"arguments":{}},{"arguments":{}}],"parameters"`, 1)
	m := built(t, sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/hostile/spin"), text), limits.Limits{Timeout: 1e7})
	ctx, cancel := context.WithCancel(t.Context())
	tried := 0
	m.TryExamples(ctx, func(trial toolfile.Trial) {
		if tried++; tried == 2 {
			cancel()
		}
		if !strings.HasPrefix(trial.Problem, string(wasmtools.CodeToolTimeout)) || trial.Got != nil {
			t.Errorf("got %+v, want %s", trial, wasmtools.CodeToolTimeout)
		}
	})
	if tried != 2 {
		t.Errorf("%d were tried, want 2", tried)
	}
}
