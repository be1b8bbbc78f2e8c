package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A ci runs steps in a tree.
type ci struct {
	tree  *tree
	out   io.Writer
	today string
	make  func(arguments []string) error
	found func(program string) bool // in PATH
	noted string                    // the file to which test/skips adds what became of tests; "": there is none

	took, left []string // what is told at the end: how long each step took, and what was left out
}

// run makes the steps that are due, or all.
func (c *ci) run(all bool) error {
	steps, err := c.tree.steps()
	if err != nil {
		return err
	}
	before, err := c.tree.passed()
	if err != nil {
		return err
	}
	digests := map[string]string{} // by the steps' names
	for _, s := range steps {
		if digests[s.name], err = c.tree.digest(s); err != nil {
			return err
		}
	}
	c.took, c.left = nil, nil
	defer func() {
		for _, line := range slices.Concat(c.took, c.left) {
			fmt.Fprintln(c.out, line)
		}
	}()
	made := map[string]bool{}
	for _, group := range groups(steps) {
		due := c.due(group, func(s step) string {
			if all {
				return ""
			}
			return since(before, s.name, digests[s.name])
		})
		if len(due) == 0 {
			continue
		}
		done := map[string]string{}
		for _, s := range due {
			done[s.name] = digests[s.name]
			for _, target := range s.first {
				if !made[target] {
					if err := c.timed(target); err != nil {
						return err
					}
					made[target] = true
				}
			}
		}
		first := c.soFar()
		if err := c.timed(arguments(due)...); err != nil {
			return errors.Join(err, c.rememberPart(due, steps, digests, first))
		}
		if err := c.remember(due, steps, done); err != nil {
			return err
		}
	}
	return nil
}

// groups returns steps with those of a group together, which follow one another.
func groups(steps []step) [][]step {
	var all [][]step
	for i, s := range steps {
		if i > 0 && s.group != "" && s.group == steps[i-1].group {
			all[len(all)-1] = append(all[len(all)-1], s)
		} else {
			all = append(all, []step{s})
		}
	}
	return all
}

// due returns the steps of a group that must run, and notes the others. since returns when a step passed with the same files, or "".
func (c *ci) due(group []step, since func(step) string) []step {
	var due []step
	var dates []string
	for _, s := range group {
		switch date := since(s); {
		case len(s.needs) > 0 && !slices.ContainsFunc(s.needs, c.found):
			c.left = append(c.left, fmt.Sprintf("NOT RUN AT ALL: make %s: there is no %s in PATH", s.name, strings.Join(s.needs, " or ")))
		case date != "":
			dates = append(dates, date)
		default:
			due = append(due, s)
		}
	}
	if len(dates) == 0 {
		return due
	}
	name, first, last := group[0].name, slices.Min(dates), slices.Max(dates)
	if group[0].group != "" {
		before, _, _ := strings.Cut(group[0].group, several)
		name = fmt.Sprintf("%s… for %d of %d packages", before, len(dates), len(group))
	}
	if last != first {
		first += " to " + last
	}
	c.left = append(c.left, fmt.Sprintf("NOT RUN AGAIN: make %s: since it passed on %s, nothing that it reads has changed", name, first))
	return due
}

// arguments returns what make is given for steps of a group.
func arguments(due []step) []string {
	if due[0].group == "" {
		return strings.Fields(due[0].name)
	}
	var folders []string
	for _, s := range due {
		folders = append(folders, s.folder)
	}
	words := strings.Fields(due[0].group)
	for i, word := range words {
		words[i] = strings.Replace(word, several, strings.Join(folders, " "), 1)
	}
	return words
}

// timed makes make make something.
func (c *ci) timed(arguments ...string) error {
	name := "make " + strings.Join(arguments, " ")
	fmt.Fprintln(c.out, "===", name)
	begin := time.Now()
	err := c.make(arguments)
	c.took = append(c.took, fmt.Sprintf("%6.0f s  %.80s", time.Since(begin).Seconds(), name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
