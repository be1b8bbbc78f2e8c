package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// A note is a line that test/skips adds to the file c.noted: the outcome of a test, or of a package if Test is "".
type note struct {
	Run, Package, Test    string
	Skipped, Less, Failed bool
}

// racing is the run with the race detector, in which some tests are skipped or check less: another run has to run these in full.
const racing = "race"

// soFar returns the present size of the notes, in bytes.
func (c *ci) soFar() int64 {
	info, err := os.Stat(c.noted)
	if err != nil {
		return 0 // the file does not exist yet
	}
	return info.Size()
}

// rememberPart records which packages of a group have passed although make has failed, so that they need not run again. It uses the notes from the
// offset first on.
func (c *ci) rememberPart(group, all []step, digests map[string]string, first int64) error {
	if group[0].group == "" || c.noted == "" {
		return nil
	}
	passed, err := c.passedSince(first, append(strings.Fields(group[0].group), racing))
	if err != nil {
		return fmt.Errorf("read which packages have passed: %w", err)
	}
	var done []step
	of := map[string]string{}
	for _, s := range group {
		packages, err := c.tree.load(nearest(c.tree.modules, s.folder))
		if err != nil {
			return err
		}
		if p := packages[s.folder]; p != nil && passed[p.ImportPath] {
			done = append(done, s)
			of[s.name] = digests[s.name]
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := c.remember(done, all, of); err != nil {
		return err
	}
	c.left = append(c.left, fmt.Sprintf("PASSED, as %s now says: %d of the %d packages that make was given last", passedFile, len(done), len(group)))
	return nil
}

// passedSince returns the packages that have passed in every one of the given runs that included them, according to the notes from the
// offset first on. Notes of other runs, which come from steps in parallel, don't count.
func (c *ci) passedSince(first int64, runs []string) (map[string]bool, error) {
	file, err := os.Open(c.noted)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(first, io.SeekStart); err != nil {
		return nil, err
	}
	raced, ran, failed, less := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for decoder := json.NewDecoder(file); ; {
		var n note
		if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		switch {
		case !slices.Contains(runs, n.Run):
		case n.Failed:
			failed[n.Package] = true
		case n.Test != "":
			less[n.Package] = less[n.Package] || n.Run == racing && (n.Skipped || n.Less)
		case n.Run == racing:
			raced[n.Package] = true
		default:
			ran[n.Package] = true
		}
	}
	passed := map[string]bool{}
	for _, names := range []map[string]bool{raced, ran} {
		for name := range names {
			passed[name] = !failed[name] && (!less[name] || ran[name])
		}
	}
	return passed, nil
}
