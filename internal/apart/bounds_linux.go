package apart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// niceness is the nice value of the processes that work for the server: the server gets the processor first.
	niceness = 5
	// maxBeside is how much writable address space a process may have in addition to its memory: Go's runtime reserves it 64 MiB at a time.
	maxBeside = 192<<20 + detector
)

// Supported is false where the operating system can't enforce the bounds.
const Supported = true

// bound limits this process for the rest of its life: it may have that many bytes of memory, and b bounds the rest. Where memory runs out, the
// system ends this process first. scarce reports whether the system may refuse memory before the limit is reached.
func bound(memory int64, b Bounds, began *atomic.Pointer[allowance]) (scarce bool, err error) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGXFSZ) // a stopping server first drains its calls, and then ends this process
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		var now syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err == nil && time.Duration(now.Utime.Nano())-began.Load().user < began.Load().more {
			os.Exit(exitSystem)
		}
		os.Exit(exitTime)
	}()
	limits := map[int]uint64{syscall.RLIMIT_CORE: 0, syscall.RLIMIT_DATA: uint64(memory) + maxBeside}
	for resource, most := range map[int]uint64{syscall.RLIMIT_FSIZE: b.File, syscall.RLIMIT_NOFILE: b.Open} {
		if most > 0 {
			limits[resource] = most
		}
	}
	for resource, most := range limits {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(resource, &now); err != nil {
			return false, err
		}
		if now.Max < most { // this process may not raise the limit
			most = now.Max
			scarce = scarce || resource == syscall.RLIMIT_DATA
		}
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return false, err
		}
	}
	var addresses syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &addresses); err != nil {
		return false, err
	}
	strict, _ := os.ReadFile("/proc/sys/vm/overcommit_memory")
	scarce = scarce || addresses.Cur != math.MaxUint64 || bytes.HasPrefix(strict, []byte("2"))
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	threads, err := os.ReadDir("/proc/self/task") // a thread inherits this from the thread that creates it
	if err != nil {
		return false, err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return false, err
		}
		now, err := syscall.Getpriority(syscall.PRIO_PROCESS, id) // the call returns 20 minus the nice value
		if err == nil {
			err = syscall.Setpriority(syscall.PRIO_PROCESS, id, min(20-now+niceness, 19))
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return false, err
		}
	}
	return scarce, nil
}

// allow sets the limits for the next piece of work. The system ends this process once it has used systemTimes times the work's processor time,
// rounded up to seconds and including the system's time on its behalf. It refuses the process memory beyond the work's limit.
func allow(most Limit) (a allowance, err error) {
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
		return a, err
	}
	used := time.Duration(now.Utime.Nano() + now.Stime.Nano())
	for resource, most := range map[int]uint64{
		syscall.RLIMIT_CPU:  uint64((used+systemTimes*most.CPU)/time.Second) + 2,
		syscall.RLIMIT_DATA: uint64(most.Bytes) + maxBeside,
	} {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(resource, &limit); err != nil {
			return a, err
		}
		limit.Cur = min(most, limit.Max)
		if err := syscall.Setrlimit(resource, &limit); err != nil {
			return a, err
		}
	}
	return allowance{time.Duration(now.Utime.Nano()), most.CPU}, nil
}

// Attributes make a child process end when this one does, and keep a terminal's signals from it.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// A Meter measures what another process has used. It never measures a later process that has the same process ID.
type Meter struct{ times, memory *os.File }

// A Use is what a process has used: time on a processor, including the system's on its behalf, and bytes of memory that it shares with nobody.
type Use struct {
	User, System time.Duration
	Bytes        int64
}

// OpenMeter opens the meter of a process that nobody has waited for yet.
func OpenMeter(pid int) (m *Meter, err error) {
	m = &Meter{}
	if m.times, err = os.Open(fmt.Sprintf("/proc/%d/stat", pid)); err != nil {
		return nil, err
	}
	if m.memory, err = os.Open(fmt.Sprintf("/proc/%d/statm", pid)); err != nil {
		return nil, errors.Join(err, m.times.Close())
	}
	return m, nil
}

// Close closes the meter.
func (m *Meter) Close() { _, _ = m.times.Close(), m.memory.Close() }

// Look reads the meter.
func (m *Meter) Look() (u Use, err error) {
	const user, system, tick = 11, 12, time.Second / 100 // these fields come after the process's name, which may have any character
	const resident, shared = 1, 2
	var room [1024]byte
	text, err := readStart(m.times, room[:])
	if err != nil {
		return u, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	number := func(i int) int64 {
		if i >= len(fields) {
			err = errors.Join(err, errors.New("the system says too little about a process"))
			return 0
		}
		n, bad := strconv.ParseInt(string(fields[i]), 10, 64)
		err = errors.Join(err, bad)
		return n
	}
	u.User, u.System = time.Duration(number(user))*tick, time.Duration(number(system))*tick
	if err != nil {
		return u, err
	}
	if text, err = readStart(m.memory, room[:]); err != nil {
		return u, err
	}
	fields = bytes.Fields(text)
	u.Bytes = (number(resident) - number(shared)) * int64(os.Getpagesize())
	return u, err
}

// readStart reads a file from its start.
func readStart(f *os.File, room []byte) ([]byte, error) {
	n, err := f.ReadAt(room, 0)
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return room[:n], err
}
