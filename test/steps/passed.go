package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A pass is a line of passedFile: when a step passed last, and the digest of what it read.
type pass struct{ date, digest, name string }

// passed returns when a step passed last, or nothing.
func (c *ci) passed(name string) (pass, error) {
	all, err := c.readPassed()
	for _, p := range all {
		if p.name == name {
			return p, err
		}
	}
	return pass{}, err
}

// readPassed returns the lines of passedFile. A line that is not one counts for nothing: its step runs.
func (c *ci) readPassed() ([]pass, error) {
	text, err := os.ReadFile(filepath.Join(c.tree.root, passedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []pass
	for line := range strings.Lines(string(text)) {
		if words := strings.SplitN(strings.TrimSpace(line), " ", 3); len(words) == 3 && words[0] != "#" {
			all = append(all, pass{words[0], words[1], words[2]})
		}
	}
	return all, nil
}

// remember writes that a step has passed with what it read when it began, if that is still so. Lines of steps that there no longer are go.
func (c *ci) remember(done step, digest string) error {
	name := done.name
	switch now, err := c.tree.digest(done); {
	case err != nil:
		return err
	case now != digest:
		return fmt.Errorf("what %s reads has changed while it ran", name)
	}
	all, err := c.readPassed()
	if err != nil {
		return err
	}
	steps, err := c.tree.steps()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(p pass) bool {
		known := p.name == long.name || slices.ContainsFunc(steps, func(s step) bool { return s.name == p.name })
		return p.name == name || !known
	})
	all = append(all, pass{c.today, digest, name})
	slices.SortFunc(all, func(a, b pass) int { return strings.Compare(a.name, b.name) })
	var text strings.Builder
	text.WriteString("# Written by test/steps: when each step of steps.txt passed last, and the digest of what it read then.\n")
	for _, p := range all {
		fmt.Fprintf(&text, "%s %s %s\n", p.date, p.digest, p.name)
	}
	file := filepath.Join(c.tree.root, passedFile)
	if err := os.WriteFile(file+".tmp", []byte(text.String()), 0o644); err != nil { //nolint:gosec // it is in git
		return err
	}
	return os.Rename(file+".tmp", file)
}
