package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A ci runs steps in a tree.
type ci struct {
	tree  *tree
	out   io.Writer
	today string
	make  func(out io.Writer, arguments []string) error
	found func(program string) bool // in PATH
	pairs bool                      // any two steps run in parallel
	noted string                    // the file to which test/skips adds the outcomes of tests, or ""

	failed    atomic.Bool     // a step has failed, so no other one begins
	filling   sync.RWMutex    // locked by a step that keeps the machine busy; read-locked by other steps that don't wait
	preparing sync.Mutex      // guards prepared, and is held while a prerequisite is made
	prepared  map[string]bool // by target

	mu         sync.Mutex // guards the fields below, and out, tree and passedFile
	took, left []string   // the report at the end: how long each step took, and which were left out
	made       []string   // the prerequisites that were made, each after the folder of its tree
}

// run runs the steps that are due, or all.
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
	c.took, c.left, c.made, c.prepared = nil, nil, nil, map[string]bool{}
	c.failed.Store(false)
	defer func() {
		for _, line := range slices.Concat(c.took, c.left) {
			fmt.Fprintln(c.out, line)
		}
	}()
	var turns, waiting queue
	for _, group := range groups(steps) {
		due := c.due(group, func(s step) string {
			if all {
				return ""
			}
			return since(before, s.name, digests[s.name])
		})
		switch {
		case len(due) == 0:
		case due[0].waits:
			waiting.groups = append(waiting.groups, due)
		default:
			turns.groups = append(turns.groups, due)
		}
	}
	other := []*queue{&waiting}
	if c.pairs {
		other = append(other, &turns)
	}
	ended := make(chan error)
	go func() { ended <- c.each(true, steps, digests, other...) }()
	return errors.Join(c.each(false, steps, digests, &turns, &waiting), <-ended)
}

// A queue has groups of steps that are due.
type queue struct {
	mu     sync.Mutex // guards groups
	groups [][]step
}

// next takes the next group out, or returns nil.
func (q *queue) next() []step {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.groups) == 0 {
		return nil
	}
	due := q.groups[0]
	q.groups = q.groups[1:]
	return due
}

// each runs groups of steps one after another, first those of the first queue and then those of the next. It stops when a step fails, here
// or in parallel. If other steps run in parallel, a step's output is written in one piece.
func (c *ci) each(beside bool, all []step, digests map[string]string, queues ...*queue) error {
	for _, q := range queues {
		for !c.failed.Load() {
			due := q.next()
			if due == nil {
				break
			}
			if err := c.turn(beside, due, all, digests); err != nil {
				c.failed.Store(true)
				return err
			}
		}
	}
	return nil
}

// turn runs a group once there is room for it: in parallel with a group that keeps the machine busy, there is room only for groups that wait.
func (c *ci) turn(beside bool, due, all []step, digests map[string]string) error {
	switch {
	case due[0].fills:
		c.filling.Lock()
		defer c.filling.Unlock()
	case !due[0].waits:
		c.filling.RLock()
		defer c.filling.RUnlock()
	}
	if c.failed.Load() { // meanwhile
		return nil
	}
	return c.pass(beside, due, all, digests)
}

// pass runs the steps of a group after their prerequisites, and records that they have passed.
func (c *ci) pass(beside bool, due, all []step, digests map[string]string) error {
	out := c.out
	if beside {
		said := &bytes.Buffer{}
		out = said
		c.mu.Lock()
		fmt.Fprintf(c.out, "BESIDE what follows: make %s\n", due[0].name)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			_, _ = said.WriteTo(c.out) // if this fails, nothing can be reported any more
		}()
	}
	done := map[string]string{}
	for _, s := range due {
		done[s.name] = digests[s.name]
		if err := c.prepare(out, s.first); err != nil {
			return err
		}
	}
	first := c.soFar()
	err := c.timed(out, arguments(due)...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return errors.Join(err, c.rememberPart(due, all, digests, first))
	}
	return c.remember(due, all, done)
}

// environment returns the environment of make. Its variable MADE names the targets that make need not make again in this folder.
func (c *ci) environment() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(os.Environ(), "MADE="+strings.Join(c.made, " "))
}

// prepare makes those targets that have not been made yet.
func (c *ci) prepare(out io.Writer, targets []string) error {
	c.preparing.Lock()
	defer c.preparing.Unlock()
	for _, target := range targets {
		if c.prepared[target] {
			continue
		}
		if err := c.timed(out, target); err != nil {
			return err
		}
		c.prepared[target] = true
		c.mu.Lock()
		c.made = append(c.made, filepath.Join(c.tree.root, target))
		c.mu.Unlock()
	}
	return nil
}

// groups returns steps in groups. Steps of the same group follow one another.
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

// due returns the steps of a group that must run, and records the others for the report. since returns when a step passed with the same files, or "".
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

// arguments returns the arguments of make for steps of a group.
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

// timed runs make, and writes its output to out.
func (c *ci) timed(out io.Writer, arguments ...string) error {
	name := "make " + strings.Join(arguments, " ")
	c.mu.Lock()
	fmt.Fprintln(out, "===", name)
	c.mu.Unlock()
	begin := time.Now()
	err := c.make(out, arguments)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, fmt.Sprintf("%6.0f s  %.80s", time.Since(begin).Seconds(), name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
