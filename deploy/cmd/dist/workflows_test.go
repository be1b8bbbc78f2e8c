package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A workflow is the part of GitHub's workflow format that ours may use. Anything else is an error, and should be added here only on purpose.
type workflow struct {
	Name        string            `json:"name"`
	On          map[string]any    `json:"true"` // YAML 1.1 reads "on" as true
	Permissions map[string]string `json:"permissions"`
	Concurrency map[string]any    `json:"concurrency"`
	Jobs        map[string]struct {
		RunsOn  string `json:"runs-on"`
		Timeout int    `json:"timeout-minutes"`
		Steps   []struct {
			Uses string            `json:"uses"`
			With map[string]any    `json:"with"`
			Run  string            `json:"run"`
			Env  map[string]string `json:"env"`
		} `json:"steps"`
	} `json:"jobs"`
}

// TestWorkflows checks that workflows only run commands that can also be run without GitHub, and actions that are pinned to a commit.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	const folder = "../../../.github/workflows"
	files, err := filepath.Glob(folder + "/*")
	if err != nil || len(files) != 2 {
		t.Fatalf("got the workflows %q (%v), want two", files, err)
	}
	commands := map[string]string{"ci.yml": ".ci/run", "release.yml": "make release-check\nmake dist\nfind dist"}
	permissions := map[string]string{"ci.yml": "read", "release.yml": "write"}
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	for name, want := range commands {
		text := content(t, folder, name)
		var w workflow
		if err := yaml.UnmarshalStrict(text, &w); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != permissions[name] {
			t.Errorf("%s has the permissions %v, want contents: %s alone", name, w.Permissions, permissions[name])
		}
		if len(w.Jobs) != 1 || len(w.On) == 0 {
			t.Errorf("%s has %d jobs, on %v, want one", name, len(w.Jobs), w.On)
		}
		for _, job := range w.Jobs {
			var runs []string
			for _, step := range job.Steps {
				if step.Run != "" {
					runs = append(runs, step.Run)
				} else if !pinned.MatchString(step.Uses) {
					t.Errorf("%s uses %q: name the commit of an action of GitHub's, with 40 digits", name, step.Uses)
				}
			}
			wanted := strings.Split(want, "\n")
			if len(runs) != len(wanted) {
				t.Errorf("%s runs %q, want %q", name, runs, wanted)
				continue
			}
			for i := range runs {
				if runs[i] != wanted[i] && !strings.HasPrefix(runs[i], wanted[i]+" ") {
					t.Errorf("%s runs %q, want %q", name, runs[i], wanted[i])
				}
			}
		}
		// The value of an expression, which somebody else may choose, would become part of the command.
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "run:") && strings.Contains(line, "${{") {
				t.Errorf("%s: %s has an expression in a command: give it a variable", name, strings.TrimSpace(line))
			}
		}
	}
}
