package compile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const supported = true

// niceness is how much the server comes before the processes that compile for it, where both want a processor.
const niceness = 5

// maxFile is the size of a file that such a process may write, and maxOpen how many it may have open.
const (
	maxFile = 768 << 20
	maxOpen = 128
	// maxApart is what a process may have of addresses that it can write to beside its memory: Go's runtime takes them 64 MiB at a time.
	maxApart = 192 << 20
)

// bound has the system bound this process for good, and take it first where memory runs out.
func bound(memory int64) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // a server that ends drains first, and then ends this
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		os.Exit(exitTime)
	}()
	for resource, most := range map[int]uint64{syscall.RLIMIT_CORE: 0, syscall.RLIMIT_DATA: uint64(memory) + maxApart, syscall.RLIMIT_FSIZE: maxFile, syscall.RLIMIT_NOFILE: maxOpen} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	threads, err := os.ReadDir("/proc/self/task") // a thread has what the one has that makes it
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		now, err := syscall.Getpriority(syscall.PRIO_PROCESS, id) // 20 less what it is
		if err == nil {
			err = syscall.Setpriority(syscall.PRIO_PROCESS, id, min(20-now+niceness, 19))
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// allow has the system end this process when it has used that much more processor time, to a second.
func allow(more time.Duration) error {
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
		return err
	}
	used := time.Duration(now.Utime.Nano() + now.Stime.Nano())
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		return err
	}
	limit.Cur = min(uint64((used+more)/time.Second)+2, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &limit)
}

// attributes has a process end with this one, and get none of the signals that a terminal sends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// kill ends a process and those that it has started.
func kill(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	_ = p.Kill()
}

// used returns what another process has used: processor time, and bytes that are resident, and of no file: what is of files the system
// takes back where it needs room.
func used(pid int) (cpu time.Duration, bytesUsed int64, err error) {
	const user, system, tick = 11, 12, time.Second / 100
	times, err := numbers(fmt.Sprintf("/proc/%d/stat", pid), user, system)
	if err != nil {
		return 0, 0, err
	}
	const resident, shared = 1, 2
	pages, err := numbers(fmt.Sprintf("/proc/%d/statm", pid), resident, shared)
	if err != nil {
		return 0, 0, err
	}
	return time.Duration(times[0]+times[1]) * tick, (pages[0] - pages[1]) * int64(os.Getpagesize()), nil
}

// numbers reads two numbers of a file, by their places. They are counted from behind the program's name, if that is there.
func numbers(path string, first, second int) (n [2]int64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return n, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= max(first, second) {
		return n, errors.New("the system tells too little of a process")
	}
	for i, at := range [2]int{first, second} {
		if n[i], err = strconv.ParseInt(string(fields[at]), 10, 64); err != nil {
			return n, err
		}
	}
	return n, nil
}
