// Command steps runs those steps of .ci/run that need not run for each change: where nothing that a step reads has changed since it passed, it is
// left out. .ci/steps.txt has the steps and what each reads, .ci/passed.txt the digest of that when each passed last. Both are in git, so that
// a clean checkout knows. What is outside of the tree, such as a compiler's version, is not in a digest: make ci-long runs all steps.
//
//	steps run            make each step that is due, one after the other, until one fails
//	steps run all        make all of them
//	steps digest         print the digest of the whole tree
//	steps long DIGEST    remember that make ci-long has passed with this tree, if that is still its digest
//	steps release        fail where make ci-long has not passed with this tree
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

const (
	stepsFile  = ".ci/steps.txt"
	passedFile = ".ci/passed.txt"
)

// long stands for make ci-long in passedFile. It reads all files.
var long = step{name: "ci-long", reads: []string{"."}}

func run(arguments []string) error {
	t, err := openTree(".")
	if err != nil {
		return err
	}
	c := &ci{tree: t, out: os.Stdout, today: time.Now().UTC().Format(time.DateOnly), make: func(arguments []string) error {
		cmd := exec.Command("make", arguments...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}, found: func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}}
	switch command := strings.Join(arguments, " "); {
	case command == "run", command == "run all":
		return c.run(command == "run all")
	case command == "digest":
		digest, err := t.digest(long)
		if err == nil {
			fmt.Println(digest)
		}
		return err
	case len(arguments) == 2 && arguments[0] == "long":
		return c.remember(long, arguments[1])
	case command == "release":
		return c.release()
	}
	return errors.New("usage: steps run | steps run all | steps digest | steps long DIGEST | steps release")
}

// A ci runs steps in a tree.
type ci struct {
	tree  *tree
	out   io.Writer
	today string
	make  func(arguments []string) error
	found func(program string) bool // in PATH
}

// run makes the steps that are due, or all. It says at the end what was left out.
func (c *ci) run(all bool) error {
	steps, err := c.tree.steps()
	if err != nil {
		return err
	}
	var left []string
	for _, s := range steps {
		if len(s.needs) > 0 && !slices.ContainsFunc(s.needs, c.found) {
			left = append(left, fmt.Sprintf("NOT RUN AT ALL: make %s: there is no %s in PATH", s.name, strings.Join(s.needs, " or ")))
			continue
		}
		digest, err := c.tree.digest(s)
		if err != nil {
			return err
		}
		before, err := c.passed(s.name)
		if err != nil {
			return err
		}
		if !all && before.digest == digest {
			left = append(left, fmt.Sprintf("NOT RUN AGAIN: make %s: since it passed on %s, nothing that it reads has changed", s.name, before.date))
			continue
		}
		begin := time.Now()
		fmt.Fprintln(c.out, "=== make", s.name)
		if err := c.make(strings.Fields(s.name)); err != nil {
			return fmt.Errorf("make %s: %w", s.name, err)
		}
		fmt.Fprintf(c.out, "--- make %s took %.0f s\n", s.name, time.Since(begin).Seconds())
		if err := c.remember(s, digest); err != nil {
			return err
		}
	}
	for _, line := range left {
		fmt.Fprintln(c.out, line)
	}
	return nil
}

// release says whether make ci-long has passed with this tree.
func (c *ci) release() error {
	digest, err := c.tree.digest(long)
	if err != nil {
		return err
	}
	before, err := c.passed(long.name)
	switch {
	case err != nil:
		return err
	case before.digest == "":
		return errors.New("make ci-long has never passed: a release needs it")
	case before.digest != digest:
		return fmt.Errorf("make ci-long passed on %s with another tree than this: a release needs it", before.date)
	}
	fmt.Fprintf(c.out, "make ci-long passed with this tree on %s\n", before.date)
	return nil
}
