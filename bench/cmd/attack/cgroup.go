package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A cgroup is a control group with a memory limit, of version 2 or 1.
type cgroup struct{ directory string }

// A place is a folder in which a group can be made, and how its memory is limited there.
type place struct {
	parent string
	limit  string // the name of the file with the limit
	swap   string // the name of the file for swap, which is written if it exists
	most   int64  // the limit of swap, in bytes
}

// newCgroup makes a group below parent, of version 2. If parent is "", the group is beside this process's own, or below it in version 1. Existing
// groups are not changed.
func newCgroup(parent string, memory int64) (*cgroup, error) {
	places := []place{{parent, "memory.max", "memory.swap.max", 0}}
	if parent == "" {
		var err error
		if places, err = findPlaces(memory); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, p := range places {
		g := &cgroup{filepath.Join(p.parent, fmt.Sprint("toolsrv-attack-", os.Getpid()))}
		if err := os.Mkdir(g.directory, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		limit, err := os.OpenFile(filepath.Join(g.directory, p.limit), os.O_WRONLY, 0) // the file exists if memory can be limited here
		if err == nil {
			_, err = limit.WriteString(strconv.FormatInt(memory, 10))
			err = errors.Join(err, limit.Close())
		}
		if err == nil {
			_ = os.WriteFile(filepath.Join(g.directory, p.swap), []byte(strconv.FormatInt(p.most, 10)), 0o600)
			return g, nil
		}
		errs = append(errs, err)
		g.remove()
	}
	return nil, errors.Join(errs...)
}

// tellGroup reports the most memory that the group had, and fails if the system killed one of its processes.
func tellGroup(a *arena, g *cgroup) error {
	for _, peak := range []string{"memory.peak", "memory.max_usage_in_bytes"} {
		text, err := os.ReadFile(filepath.Join(g.directory, peak))
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return err
		}
		a.tell("%d MiB at most together", n>>20)
	}
	for _, events := range []string{"memory.events", "memory.oom_control"} {
		text, _ := os.ReadFile(filepath.Join(g.directory, events)) // the names in the two versions
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && n != "0" {
				return fmt.Errorf("the system killed %s processes for want of memory", n)
			}
		}
	}
	return nil
}

// remove removes the group; a process in it that has just ended may still be counted for a moment.
func (g *cgroup) remove() {
	for range 50 {
		if os.Remove(g.directory) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// findPlaces returns where groups may be made, judging by the mounts and the groups that this process is in.
func findPlaces(memory int64) (places []place, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own := map[string]string{} // this process's groups, by controller; "" stands for version 2
	for line := range strings.Lines(string(groups)) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 {
			own[fields[1]] = fields[2]
		}
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		mount, options := fields[1], strings.Split(fields[3], ",")
		switch {
		case fields[2] == "cgroup2":
			// A group with processes can't have groups with controllers below it, so the new group goes beside it.
			places = append(places, place{filepath.Join(mount, filepath.Dir(own[""])), "memory.max", "memory.swap.max", 0})
		case fields[2] == "cgroup" && slices.Contains(options, "memory"):
			places = append(places, place{filepath.Join(mount, own["memory"]), "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", memory})
		}
	}
	if len(places) == 0 {
		return nil, errors.New("no control groups are mounted")
	}
	return places, nil
}
