package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const suiteLimit = 5 * time.Minute // the longest time of one run of the suite

// TestConformance runs the official suite for each version that is served. expected/ lists what may fail, each entry with its reason; if an
// entry passes, the test fails, too. The suite runs some scenarios without scoring them: those that a server of tools can pass are run
// again by name, so that they count.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version   string
		selection []string
		also      []string
	}{
		{"2026-07-28", []string{"--requirements", "2026-07-28"},
			[]string{"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"}},
		{"2025-11-25", []string{"--requirements", "2025-11-25"}, []string{"json-schema-2020-12", "server-session-lifecycle"}},
		{"2025-06-18", []string{"--suite", "all", "--spec-version", "2025-06-18"}, nil},
	} {
		t.Run(test.version, func(t *testing.T) {
			t.Parallel()
			expected, err := filepath.Abs(filepath.Join("expected", test.version+".yml"))
			if err != nil {
				t.Fatal(err)
			}
			url := startChanging(t) + "/mcp"
			runs := [][]string{test.selection}
			for _, scenario := range test.also {
				runs = append(runs, []string{"--scenario", scenario, "--spec-version", test.version})
			}
			for _, selection := range runs {
				t.Run(selection[1], func(t *testing.T) {
					results := t.TempDir()
					command := append([]string{node(t), "node_modules/.bin/conformance", "server", "--url", url,
						"--expected-failures", expected, "--output-dir", results}, selection...)
					stdout, stderr, err := run(t, suiteLimit, nil, command...)
					if err != nil {
						t.Errorf("the suite: %v\n%s\n%s\nall that failed:\n%s", err, verdict(stdout), clip(stderr), failed(t, results))
					}
				})
			}
		})
	}
}

// verdict matches the end of the suite's output: the unexpected failures, and the expected failures that did not happen.
func verdict(stdout string) string {
	for _, heading := range []string{"Stale baseline entries", "Unexpected failures"} {
		if i := strings.Index(stdout, heading); i >= 0 {
			return stdout[i:]
		}
	}
	return clip(stdout)
}

// failed returns a line for each failed check in the results that the suite wrote, whether or not the failure
// was expected.
func failed(t *testing.T, results string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				fmt.Fprintf(&all, "%s %s: %.300s\n", filepath.Base(filepath.Dir(file)), c.ID, c.ErrorMessage)
			}
		}
	}
	return all.String()
}

// startChanging starts a server whose directory changes whenever test_trigger_tool_change is called: a tool is added or removed.
func startChanging(t *testing.T) (url string) {
	s := prepare(t, "")
	math, there := filepath.Join(setting(t, "TOOLS"), "math.wasm"), false
	return s.start(t, func(line logLine) {
		if line.Msg != "change the tools" {
			return
		}
		var err error
		if there {
			err = os.Remove(filepath.Join(s.tools, "math.wasm"))
		} else {
			err = s.put(math, "math.wasm")
		}
		if err != nil {
			t.Errorf("change the tools: %v", err)
		}
		there = !there
	})
}

// TestExpectedFailures checks that each group of entries in expected/ has a comment with the reason above it.
func TestExpectedFailures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("expected/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reason := false
		for line := range strings.Lines(string(text)) {
			switch line = strings.TrimSpace(line); {
			case line == "":
				reason = false
			case strings.HasPrefix(line, "# "):
				reason = true
			case strings.HasPrefix(line, "- ") && !reason:
				t.Errorf("%s: %q has no reason: write a comment above it", file, line)
			}
		}
	}
}
