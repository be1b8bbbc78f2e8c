package apart_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestMain also serves as two kinds of child process: one that takes memory until there is no more, and one of a pool.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		if err := serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "hog" {
		most, err := strconv.ParseUint(os.Args[2], 10, 64)
		if err == nil {
			err = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		type link struct{ last *link } // pointers, so that the garbage collector has work
		last := new(link)
		for last != nil {
			last = &link{last}
		}
	}
	os.Exit(m.Run())
}

// TestNoMemory makes the system refuse memory at many places in Go's runtime, and checks that each of the runtime's last messages is recognised. In
// some places of its garbage collector, Go 1.26 dies of a segmentation violation.
func TestNoMemory(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the emulator takes memory of its own")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for most := uint64(0); most < 64<<20; most += 1 << 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, self, "hog", strconv.FormatUint(most, 10))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		err := cmd.Run()
		cancel()
		if err == nil || !apart.NoMemory(stderr.String()) {
			t.Fatalf("%v: %.2000s", err, stderr.String())
		}
	}
	if !apart.NoMemory("SIGSEGV: segmentation violation\nPC=0x43989d m=4 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0xc000002a00 m=4 mp=0xc000080008 [idle]:\n") {
		t.Error("the garbage collector's failure is not recognized")
	}
	for _, said := range []string{"", "exit status 1", "panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4719bd]\n"} {
		if apart.NoMemory(said) {
			t.Errorf("%q is wrongly taken for a lack of memory", said)
		}
	}
}
