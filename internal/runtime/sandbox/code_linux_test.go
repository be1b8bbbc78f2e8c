package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// noCodeVariable is set when this test runs again, in a process that may not make memory executable.
const noCodeVariable = "TOOLSRV_TEST_NO_CODE"

// TestNoCode makes an engine where the kernel refuses executable memory, as under MemoryDenyWriteExecute= of systemd. That must be an error.
// Interpreting instead would be twenty times slower, and the limits of the stack were not measured for it.
func TestNoCode(t *testing.T) {
	if os.Getenv(noCodeVariable) == "" {
		testkit.SkipEmulated(t, "the test can't start itself again")
		t.Parallel()
		c := exec.Command(os.Args[0], "-test.run=^TestNoCode$", "-test.v")
		c.Env = append(os.Environ(), noCodeVariable+"=1")
		out, err := c.CombinedOutput()
		if strings.Contains(string(out), "the kernel knows no PR_SET_MDWE") {
			t.Skipf("SKIPPED, and so a process that may not run what it compiles is not tested: %s", out)
		}
		if err != nil || !strings.Contains(string(out), "PASS: TestNoCode") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	const setMDWE, refuseGain = 65, 1 // PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN: Linux 6.3
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setMDWE, refuseGain, 0, 0, 0, 0); errno != 0 {
		t.Skip("the kernel knows no PR_SET_MDWE:", errno)
	}
	for _, cache := range []string{"", t.TempDir()} {
		e, err := sandbox.New(t.Context(), sandbox.Config{CacheDir: cache})
		if err == nil {
			_ = e.Close(t.Context())
			t.Fatalf("with the cache directory %q: got an engine, want an error: nothing that it compiles can run", cache)
		}
		for _, want := range []string{"this process may not run code that it compiles: permission denied", "MemoryDenyWriteExecute="} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("with the cache directory %q: got %q, want it to contain %q", cache, err, want)
			}
		}
	}
}
