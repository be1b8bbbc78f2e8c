// Command skips runs `go test` and remembers which tests were skipped and why, so that one summary at the end of a whole
// run lists everything that was not tried.
//
//	skips test ARGUMENTS         go test ARGUMENTS; what it saw is appended to the file that $SKIPS names, under the name $SKIPS_RUN
//	skips rest RUN ARGUMENTS     the same for only those tests that the run RUN has skipped, or that showed less there (testkit.Race)
//	skips show FILE              the summary of that file
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	err := errors.New("usage: skips test ARGUMENTS | skips rest RUN ARGUMENTS | skips show FILE")
	if len(os.Args) > 1 {
		switch {
		case os.Args[1] == "test":
			err = runTests(os.Args[2:])
		case os.Args[1] == "rest" && len(os.Args) > 2:
			err = runRest(os.Args[2], os.Args[3:])
		case os.Args[1] == "show" && len(os.Args) == 3:
			err = showFile(os.Args[2])
		}
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		os.Exit(failed.ExitCode()) // go test has already printed why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

func runTests(arguments []string) error {
	file, err := os.OpenFile(os.Getenv("SKIPS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open what $SKIPS names: %w", err)
	}
	defer file.Close()
	cmd := exec.Command("go", append([]string{"test", "-json"}, arguments...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	read := follow(events, os.Stdout, file, os.Getenv("SKIPS_RUN"))
	return errors.Join(cmd.Wait(), read)
}

// runRest runs the tests that a run has left out.
func runRest(run string, arguments []string) error {
	content, err := os.ReadFile(os.Getenv("SKIPS"))
	if err != nil {
		return fmt.Errorf("read what $SKIPS names: %w", err)
	}
	tests, packages, err := rest(bytes.NewReader(content), run)
	if err != nil || len(tests) == 0 {
		return err
	}
	fmt.Printf("%d tests of %d packages, which %s has skipped, or which checked less there\n", len(tests), len(packages), run)
	return runTests(slices.Concat(arguments, []string{"-run", "^(" + strings.Join(tests, "|") + ")$"}, packages))
}

// rest returns the tests that a run has skipped, and those that reported there that they check less; and their packages. For a subtest, it
// returns the test that it is part of.
func rest(results io.Reader, run string) (tests, packages []string, err error) {
	for decoder := json.NewDecoder(results); ; {
		var r result
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if r.Run == run && (r.Skipped || r.Less) {
			test, _, _ := strings.Cut(r.Test, "/")
			tests, packages = append(tests, test), append(packages, r.Package)
		}
	}
	slices.Sort(tests)
	slices.Sort(packages)
	return slices.Compact(tests), slices.Compact(packages), nil
}

// An event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Key                           string // of an attribute
	ImportPath                    string // the output of a build
}

// A result is a line of the file: a test that was skipped, or that has passed, perhaps after checking less than it could; or, if Test is "", a
// package that has passed or failed, which test/steps remembers.
type result struct {
	Run, Package, Test string
	Skipped            bool   `json:",omitempty"`
	Less               bool   `json:",omitempty"`
	Failed             bool   `json:",omitempty"`
	Reason             string `json:",omitempty"`
}

// follow writes what go test would have written to out, and results to file.
func follow(events io.Reader, out, file io.Writer, run string) error {
	results := json.NewEncoder(file)
	outputs := map[[2]string][]string{} // the output of tests that have not passed, by package and test
	order := map[string][]string{}      // their names, by package
	less := map[[2]string]bool{}        // tests that have reported that they check less
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	var errs []error
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // not an event, but a message of the tool chain
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch {
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output":
			if _, known := outputs[key]; !known {
				order[e.Package] = append(order[e.Package], e.Test)
			}
			outputs[key] = append(outputs[key], e.Output)
		case e.Action == "attr":
			less[key] = less[key] || e.Key == "race" // testkit.Race
		case e.Test != "" && (e.Action == "pass" || e.Action == "skip"):
			r := result{Run: run, Package: e.Package, Test: e.Test, Skipped: e.Action == "skip", Less: less[key]}
			if r.Skipped {
				r.Reason = reason(outputs[key])
			}
			errs = append(errs, results.Encode(r))
			outputs[key] = nil
		case e.Test == "" && e.Action == "fail":
			errs = append(errs, results.Encode(result{Run: run, Package: e.Package, Failed: true}))
			for _, test := range order[e.Package] {
				fmt.Fprint(out, strings.Join(outputs[[2]string{e.Package, test}], ""))
			}
		case e.Test == "" && (e.Action == "pass" || e.Action == "skip"):
			if e.Action == "pass" {
				errs = append(errs, results.Encode(result{Run: run, Package: e.Package}))
			}
			if all := outputs[key]; len(all) > 0 {
				fmt.Fprint(out, all[len(all)-1]) // "ok", and how long the package took
			}
		}
	}
	return errors.Join(append(errs, lines.Err())...)
}

// reason returns the message of a skipped test, without its position in the source.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if place, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(place, ".go:") {
			line = rest
		}
		said = append(said, line)
	}
	return strings.Join(said, " ")
}

func showFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return show(os.Stdout, bytes.NewReader(content))
}
