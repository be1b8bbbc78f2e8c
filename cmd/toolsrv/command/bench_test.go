package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

func TestBench(t *testing.T) {
	t.Parallel()
	file := shop(t)
	code, stdout, stderr := run("bench", file, "echo", order, "-n", "50", "--warm-up", "0")
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "/shop/echo: 50 calls in 0.") || !strings.Contains(stdout, "1 at a time, none failed\n") {
		t.Errorf("exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
	for _, row := range []string{"calls/s", "min", "p50", "p90", "p99", "p99.9", "max"} {
		if !strings.Contains(stdout, row+"  ") {
			t.Errorf("no row %s in %q", row, stdout)
		}
	}

	code, stdout, stderr = run("bench", file, "echo", "-", "--duration", "50ms", "--warm-up", "10ms", "--concurrency", "3", "--json")
	if code != 3 || stdout != "" || !strings.Contains(stderr, "item: Field required") {
		t.Errorf("nothing on standard input: exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
	code, stdout, stderr = runWith(order, "bench", file, "echo", "-", "--duration", "50ms", "--warm-up", "10ms", "--concurrency", "3", "--json")
	var got struct {
		Path           string
		Concurrency    int
		Seconds        float64
		Calls, Failed  int64
		CallsPerSecond float64            `json:"calls_per_second"`
		Microseconds   map[string]float64 `json:"microseconds"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || stderr != "" {
		t.Fatalf("--json: exit code %d, %v, %s, standard error %q", code, err, stdout, stderr)
	}
	us := got.Microseconds
	if got.Path != "/shop/echo" || got.Concurrency != 3 || got.Seconds < 0.05 || got.Calls < 3 || got.Failed != 0 || got.CallsPerSecond <= 0 {
		t.Errorf("got %+v", got)
	}
	if us["min"] <= 0 || us["min"] > us["p50"] || us["p50"] > us["p90"] || us["p90"] > us["p99"] || us["p99"] > us["p99_9"] || us["p99_9"] > us["max"] {
		t.Errorf("got %v, want them ascending", us)
	}
}

// TestBenchExample checks that the arguments come from the first example.
func TestBenchExample(t *testing.T) {
	t.Parallel()
	file := testkit.Put(t, t.TempDir(), "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), examples(`{"arguments":{"item":"tea"}}`)))
	if code, stdout, stderr := run("bench", file, "-n", "5", "--warm-up", "0"); code != 0 || !strings.HasPrefix(stdout, "/shop/echo: 5 calls in ") {
		t.Errorf("exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
}

func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	file := shop(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no arguments and no example", []string{"echo"}, 2, "/shop/echo has no example to take arguments from"},
		{"no tool", nil, 2, "has several tools"},
		{"no concurrency", []string{"echo", order, "-c", "0"}, 2, "--concurrency is 0: give a number from 1 to 1000"},
		{"much concurrency", []string{"echo", order, "-c", "100000"}, 2, "--concurrency is 100000"},
		{"no calls", []string{"echo", order, "-n", "0"}, 2, "--calls is 0"},
		{"two ends", []string{"echo", order, "-n", "1", "-d", "1s"}, 2, "each say when to stop"},
		{"no time", []string{"echo", order, "-d", "0s"}, 2, "--duration is 0s"},
		{"a number in place of a time", []string{"echo", order, "-d", "5"}, 2, "--duration"},
		{"a negative time", []string{"echo", order, "--warm-up", "-1s"}, 2, "--warm-up is -1s"},
		{"a tool that fails", []string{"refuse", order}, 4, "tool_error: Only 2 are left."},
		{"no file", []string{"echo", order, "--config", file + "/nowhere"}, 1, "nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"bench", file}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
}
