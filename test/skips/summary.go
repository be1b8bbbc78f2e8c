package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A skip is a skipped test, with the runs in which it was skipped and the reasons.
type skip struct {
	name    string // package and test
	reasons map[string][]string
}

// show writes the summary: first the tests that were skipped in all runs, and then those that ran in at least one. A
// test that passed although some of its subtests were skipped does not count as a run of those subtests.
func show(out io.Writer, results io.Reader) error {
	skips, passed := map[string]*skip{}, map[string]bool{}
	for decoder := json.NewDecoder(results); ; {
		var r result
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if r.Test == "" {
			continue
		}
		name := strings.TrimPrefix(r.Package, "github.com/toolsrv/toolsrv/") + " " + r.Test
		if !r.Skipped {
			passed[name] = true
			continue
		}
		if skips[name] == nil {
			skips[name] = &skip{name, map[string][]string{}}
		}
		of := skips[name].reasons
		if !slices.Contains(of[r.Reason], r.Run) {
			of[r.Reason] = append(of[r.Reason], r.Run)
		}
	}
	var nowhere, elsewhere []*skip
	for _, name := range slices.Sorted(maps.Keys(skips)) {
		if passed[name] {
			elsewhere = append(elsewhere, skips[name])
		} else {
			nowhere = append(nowhere, skips[name])
		}
	}
	fmt.Fprintln(out, strings.Repeat("=", 100))
	if len(nowhere) == 0 {
		fmt.Fprintln(out, "NO TEST WAS SKIPPED EVERYWHERE")
	} else {
		fmt.Fprintf(out, "%d TESTS WERE NOT RUN AT ALL:\n", len(nowhere))
		list(out, nowhere)
	}
	if len(elsewhere) > 0 {
		fmt.Fprintf(out, "%d were skipped in one run and passed in another:\n", len(elsewhere))
		list(out, elsewhere)
	}
	fmt.Fprintln(out, strings.Repeat("=", 100))
	return nil
}

// list writes skips, grouped by their reasons.
func list(out io.Writer, skips []*skip) {
	byReason := map[string][]string{}
	for _, s := range skips {
		for why, runs := range s.reasons {
			byReason[why] = append(byReason[why], fmt.Sprintf("%s (%s)", s.name, strings.Join(runs, ", ")))
		}
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		if why == "" {
			fmt.Fprintln(out, "  skipped without a reason:")
		} else {
			fmt.Fprintf(out, "  skipped: %s\n", why)
		}
		for _, test := range byReason[why] {
			fmt.Fprintf(out, "    %s\n", test)
		}
	}
}
