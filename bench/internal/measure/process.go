package measure

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// Resident returns how many bytes of memory this process uses: its resident private memory and files, and all that its memfds contain, whether mapped
// or not. Before that, Go's heap is collected and returned to the system.
func Resident() (int64, error) {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for _, name := range []string{"RssAnon", "RssFile"} {
		n, err := field(status, name)
		if err != nil {
			return 0, err
		}
		sum += n << 10
	}
	memfds, err := memfds()
	return sum + memfds, err
}

func field(status []byte, name string) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			return strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", name)
}

// memfds returns how many bytes all memory files contain.
func memfds() (int64, error) {
	sum := int64(0)
	err := eachFile(func(path, target string) {
		var stat syscall.Stat_t
		if strings.HasPrefix(target, "/memfd:") && syscall.Stat(path, &stat) == nil {
			sum += stat.Blocks * 512
		}
	})
	return sum, err
}

// Files returns the number of open file descriptors.
func Files() (int, error) {
	n := 0
	err := eachFile(func(_, _ string) { n++ })
	return n, err
}

func eachFile(f func(path, target string)) error {
	const directory = "/proc/self/fd/"
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if target, err := os.Readlink(directory + e.Name()); err == nil { // the directory itself is closed by now
			f(directory+e.Name(), target)
		}
	}
	return nil
}

// Maps returns the number of the process's memory mappings, which the system bounds.
func Maps() (int, error) {
	text, err := os.ReadFile("/proc/self/maps")
	return bytes.Count(text, []byte("\n")), err
}
