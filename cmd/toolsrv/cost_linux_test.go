package main_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// peak runs a command, and returns the most memory that it had. The figure that Linux reports to the parent is wrong. Go starts a child in the
// memory of the test's process, so the figure is at least the peak of that process, which is more than most commands need. Therefore the child is
// stopped when it exits, and measured then.
func peak(t *testing.T, cmd *exec.Cmd) int64 {
	t.Helper()
	runtime.LockOSThread() // only this thread may trace the child
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Skipf("this system does not let a child be stopped: %v", err)
	}
	pid, memory, begun := cmd.Process.Pid, int64(0), false
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		if !status.Stopped() {
			_ = cmd.Process.Release()
			return memory
		}
		signal := int(status.StopSignal())
		switch {
		case !begun:
			if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACEEXIT); err != nil {
				t.Fatal(err)
			}
			begun, signal = true, 0
		case status.TrapCause() == syscall.PTRACE_EVENT_EXIT:
			most := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(testkit.Read(t, fmt.Sprintf("/proc/%d/status", pid)))
			if most == nil {
				t.Fatal("the system reports no peak")
			}
			memory, _ = strconv.ParseInt(string(most[1]), 10, 64)
			memory, signal = memory<<10, 0
		}
		if err := syscall.PtraceCont(pid, signal); err != nil {
			t.Fatal(err)
		}
	}
}
