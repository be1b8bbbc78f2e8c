package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// Tools of the fixture hostile/progress.
const (
	progressFlood = iota
	progressSenseless
	progressWild
	progressLong
	progressSleeps
	progressSpins
	progressTraps
	progressReturns
)

// reports records what a call reports, and when.
type reports struct {
	told []string
	when []time.Time
	hear func() // what the listener does with each report; nil: nothing
}

func (r *reports) Log(slog.Level, string, string) {}

func (r *reports) Progress(done, total float64, message string) {
	r.told, r.when = append(r.told, fmt.Sprintf("%v/%v %s", done, total, message)), append(r.when, time.Now())
	if r.hear != nil {
		r.hear()
	}
}

func (r *reports) String() string { return strings.Join(r.told, "; ") }

// TestProgress has a guest report in every way.
func TestProgress(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/hostile/progress"))
	if err := p.Compile(t.Context()); err != nil { // beforehand, so that compiling takes none of a call's time
		t.Fatal(err)
	}
	ample := limits.Limits{Timeout: time.Minute}
	const burst = "1/10 step; 2/10 step; 3/10 step; 4/10 step"
	for _, test := range []struct {
		name    string
		tool    int32
		limits  limits.Limits
		outcome sandbox.Outcome
		want    string
	}{
		{"senseless numbers", progressSenseless, ample, sandbox.OK, "0/0 a; 1/0 b; 2/0 c"},
		{"a message outside the memory", progressWild, ample, sandbox.ToolTrapped, ""},
		{"a long message", progressLong, ample, sandbox.OK, "1/0 \uFFFD" + strings.Repeat("é", 509) + "..."},
		{"the end", progressReturns, ample, sandbox.OK, burst},
		{"a trap", progressTraps, ample, sandbox.ToolTrapped, burst},
		{"a guest that computes", progressSpins, limits.Limits{Timeout: time.Second}, sandbox.ToolTimeout, burst},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tool := p.Tool("x", test.tool, test.limits)
			var heard reports
			for _, spec := range []sandbox.CallSpec{{Listener: &heard}, {}} {
				_, err := tool.Call(t.Context(), spec)
				if test.outcome != sandbox.OK {
					wantError(t, err, test.outcome, "")
				} else if err != nil {
					t.Error(err)
				}
			}
			if got := heard.String(); got != test.want {
				t.Errorf("heard %q, want %q", got, test.want)
			}
		})
	}
}

// TestProgressOfCommand has a plain WASI program report.
func TestProgressOfCommand(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/command_progress"))
	var heard reports
	out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Listener: &heard})
	if err != nil || string(out) != "1" || heard.String() != "0.5/1 half" {
		t.Errorf("got %s, %v, heard %q", out, err, heard.told)
	}
}

// TestProgressBeforePause has a guest report more often than it may, and then pause. The newest report is passed on before the guest sleeps, or soon
// if it computes.
func TestProgressBeforePause(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/hostile/progress"))
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	for tool, patience := range map[int32]time.Duration{progressSleeps: 0, progressSpins: 100 * time.Millisecond} {
		var heard reports
		ctx, cancel := context.WithCancel(t.Context())
		heard.hear = func() {
			if len(heard.told) == 4 {
				cancel() // long before the guest is done
			}
		}
		_, err := p.Tool("x", tool, limits.Limits{Timeout: time.Minute}).Call(ctx, sandbox.CallSpec{Listener: &heard})
		wantError(t, err, sandbox.Cancelled, "")
		if len(heard.told) != 4 || heard.told[3] != "4/10 step" || heard.when[3].Sub(heard.when[0]) < patience {
			t.Errorf("heard %q at %v, want the last after %v", heard.told, heard.when, patience)
		}
	}
}

// TestProgressIsBounded has a guest report forever. Few reports are passed on, the guest's limits hold, and each report says more than the one
// before. Later calls are not affected.
func TestProgressIsBounded(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{Logger: r.Logger(slog.LevelDebug)}), testkit.Fixture(t, "wat/hostile/progress"))
	for outcome, limits := range map[sandbox.Outcome]limits.Limits{
		sandbox.ToolTimeout: {Timeout: 1500 * time.Millisecond},
		sandbox.ToolFuel:    {Timeout: time.Minute, Fuel: 100_000_000},
	} {
		var heard reports
		began := time.Now()
		_, err := p.Tool("x", progressFlood, limits).Call(t.Context(), sandbox.CallSpec{Listener: &heard})
		wantError(t, err, outcome, "")
		took := time.Since(began) // on a busy machine fuel lasts for seconds
		if n := len(heard.told); n < 4 || n > 11+int(10*took.Seconds()) {
			t.Errorf("%s: heard %d reports in %v", outcome, n, took)
		}
		for i := range heard.when {
			if i >= 10 && heard.when[i].Sub(heard.when[i-10]) < time.Second {
				t.Errorf("%s: eleven reports within a second: %v", outcome, heard.when)
			}
		}
		var numbers []float64
		for _, told := range heard.told {
			done, _, _ := strings.Cut(told, "/")
			n, err := strconv.ParseFloat(done, 64)
			if err != nil {
				t.Error(err)
			}
			numbers = append(numbers, n)
		}
		if !slices.IsSorted(numbers) {
			t.Errorf("%s: heard %q", outcome, heard.told)
		}
		var next reports
		if _, err := p.Tool("x", progressReturns, limits).Call(t.Context(), sandbox.CallSpec{Listener: &next}); err != nil || len(next.told) != 4 {
			t.Errorf("the next call: heard %q, %v", next.told, err)
		}
	}
}

// TestListenerPanics has a listener panic while the guest reports, while the host checks the guest, and while the guest ends. Only
// that call may fail.
func TestListenerPanics(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/hostile/progress"))
	for _, tool := range []int32{progressReturns, progressSleeps, progressSpins} {
		for at := 1; at <= 4; at += 3 {
			var heard reports
			heard.hear = func() {
				if len(heard.told) == at {
					panic("the listener broke")
				}
			}
			_, err := p.Tool("x", tool, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Listener: &heard})
			wantError(t, err, sandbox.Internal, "")
		}
	}
	if _, err := p.Tool("x", progressReturns, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{}); err != nil {
		t.Error(err)
	}
}
