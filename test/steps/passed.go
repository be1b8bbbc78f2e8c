package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A pass is a line of passedFile: when a step last passed, and the digest of what it read.
type pass struct{ date, digest, name string }

// passed returns the passes in passedFile. A malformed line is ignored, so its step runs. A step may have several lines, since git keeps those of
// both sides in a merge (.gitattributes).
func (t *tree) passed() ([]pass, error) {
	text, err := os.ReadFile(filepath.Join(t.root, passedFile))
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

// since returns when a step passed with a digest, or "".
func since(passed []pass, name, digest string) string {
	for _, p := range passed {
		if p.name == name && p.digest == digest {
			return p.date
		}
	}
	return ""
}

// remember records that steps have passed, if their files have not changed since they began. digests are the digests from then, by the names of the
// steps. Lines of steps that are not in all are removed.
func (c *ci) remember(done, all []step, digests map[string]string) error {
	clear(c.tree.sums)
	var changed []string
	for _, s := range done {
		switch now, err := c.tree.digest(s); {
		case err != nil:
			return err
		case now != digests[s.name]:
			changed = append(changed, s.name)
		}
	}
	if len(changed) > 0 {
		return fmt.Errorf("what these read has changed while they ran: %s", strings.Join(changed, ", "))
	}
	passes, err := c.tree.passed()
	if err != nil {
		return err
	}
	known := map[string]bool{long.name: true}
	for _, s := range all {
		known[s.name] = true
	}
	passes = slices.DeleteFunc(passes, func(p pass) bool { return digests[p.name] != "" || !known[p.name] })
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		passes = append(passes, pass{c.today, digests[name], name})
	}
	slices.SortStableFunc(passes, func(a, b pass) int { return strings.Compare(a.name, b.name) })
	var text strings.Builder
	text.WriteString("# Written by test/steps: when each step of steps.txt passed last, and the digest of what it read then.\n")
	for _, p := range passes {
		fmt.Fprintf(&text, "%s %s %s\n", p.date, p.digest, p.name)
	}
	file := filepath.Join(c.tree.root, passedFile)
	if err := os.WriteFile(file+".tmp", []byte(text.String()), 0o644); err != nil { //nolint:gosec // the file is in git
		return err
	}
	return os.Rename(file+".tmp", file)
}

// rememberLong records that make ci-long has passed with a digest, if the tree still has that digest.
func (c *ci) rememberLong(digest string) error {
	steps, err := c.tree.steps()
	if err != nil {
		return err
	}
	return c.remember([]step{long}, steps, map[string]string{long.name: digest})
}
