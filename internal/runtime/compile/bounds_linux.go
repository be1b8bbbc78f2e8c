package compile

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
)

const supported = true

const (
	// maxFile is the size of a file that such a process may write, and maxOpen how many it may have open.
	maxFile = mostCode
	maxOpen = 128
)

// An allowance is the processor time that a process had used when it got a module, and the time that it may use for the module.
type allowance struct {
	user, more time.Duration
}

// bound makes the system bound this process for good, and take it first where memory runs out. It says whether the system may refuse
// memory before the bound is reached.
func bound(memory int64, began *atomic.Pointer[allowance]) (scarce bool, err error) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGXFSZ) // a server that ends drains first, and then ends this
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
	return apart.Bound(memory, map[int]uint64{syscall.RLIMIT_FSIZE: maxFile, syscall.RLIMIT_NOFILE: maxOpen})
}

// allow makes the system end this process when it has used that much more time on a processor, with what the system does for it, to a
// second.
func allow(more time.Duration) (*allowance, error) {
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
		return nil, err
	}
	used := time.Duration(now.Utime.Nano() + now.Stime.Nano())
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		return nil, err
	}
	limit.Cur = min(uint64((used+systemTimes*more)/time.Second)+2, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		return nil, err
	}
	return &allowance{time.Duration(now.Utime.Nano()), more}, nil
}
