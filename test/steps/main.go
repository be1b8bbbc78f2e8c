// Command steps runs the steps of .ci/run, except those whose files have not changed since they passed. .ci/steps.txt says what each step
// reads, and .ci/passed.txt has its digest from when the step passed last. Both are in git, so that other checkouts know. A digest has
// nothing from outside the tree, such as a compiler's version: make ci-long runs all steps. If a step for many packages fails, the packages
// that passed all the same are remembered, as far as the file that $SKIPS names lists them (test/skips).
//
//	steps run            make the steps that are due until one fails: first the ones that wait beside the others, then two at a time
//	steps run all        make all of them
//	steps digest         print the digest of the whole tree
//	steps long DIGEST    remember that make ci-long has passed with this tree, if that is still its digest
//	steps release        say what is missing for a release of this tree, and fail if anything is
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
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
	c := &ci{tree: t, out: os.Stdout, today: time.Now().UTC().Format(time.DateOnly), noted: os.Getenv("SKIPS"), pairs: runtime.NumCPU() > 1}
	c.make = func(out io.Writer, arguments []string) error {
		cmd := exec.Command("make", append([]string{"--keep-going"}, arguments...)...) // steps that pass need not run again
		cmd.Stdout, cmd.Stderr, cmd.Env = out, out, c.environment()
		return cmd.Run()
	}
	c.found = func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
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
		return c.rememberLong(arguments[1])
	case command == "release":
		return c.release()
	}
	return errors.New("usage: steps run | steps run all | steps digest | steps long DIGEST | steps release")
}
