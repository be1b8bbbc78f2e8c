package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A cgroup is a group of version 2 with a limit of memory.
type cgroup struct{ directory string }

// newCgroup makes a group below parent, or where parent is "" beside this process's own. It changes nothing of the groups
// that are there.
func newCgroup(parent string, memory int64) (*cgroup, error) {
	parents := []string{parent}
	if parent == "" {
		mount, own, err := ownCgroup()
		if err != nil {
			return nil, err
		}
		parents = []string{mount}
		if own != "/" {
			parents = []string{filepath.Join(mount, filepath.Dir(own)), mount}
		}
	}
	var errs []error
	for _, p := range parents {
		controllers, err := os.ReadFile(filepath.Join(p, "cgroup.subtree_control"))
		if err != nil || !strings.Contains(string(controllers), "memory") {
			errs = append(errs, fmt.Errorf("%s does not hand down the memory controller", p))
			continue
		}
		g := &cgroup{filepath.Join(p, fmt.Sprint("toolsrv-attack-", os.Getpid()))}
		if err = os.Mkdir(g.directory, 0o755); err == nil {
			err = os.WriteFile(filepath.Join(g.directory, "memory.max"), []byte(strconv.FormatInt(memory, 10)), 0o600)
			if err == nil {
				_ = os.WriteFile(filepath.Join(g.directory, "memory.swap.max"), []byte("0"), 0o600) // where swap is counted
				return g, nil
			}
			g.remove()
		}
		errs = append(errs, err)
	}
	return nil, errs[0]
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

// ownCgroup returns where version 2 is mounted, and this process's group in it.
func ownCgroup() (mount, own string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			mount = fields[1]
		}
	}
	for line := range strings.Lines(string(groups)) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSpace(rest)
		}
	}
	if mount == "" || own == "" {
		return "", "", errors.New("there is no cgroup of version 2")
	}
	return mount, own, nil
}
