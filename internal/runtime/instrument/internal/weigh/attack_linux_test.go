package weigh_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// The most that compiling an accepted module may take, unless it has 5 MB of code.
const (
	mostCPU   = 5 * time.Second
	mostBytes = 512 << 20
)

// TestCompileAttack compiles each shape at the largest size that is accepted. It takes half an hour, so only make attack-compile runs it.
func TestCompileAttack(t *testing.T) {
	if os.Getenv("TOOLSRV_ATTACK_COMPILE") == "" {
		t.Skip("takes half an hour: make attack-compile")
	}
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) { attackWith(t, s) })
	}
}

// attackWith compiles a shape at the largest size that is accepted.
func attackWith(t *testing.T, s shape) {
	t.Helper()
	for _, ratio := range [][2]int{{1, 1}, {1, 16}, {16, 1}} {
		if !s.product() && ratio != [2]int{1, 1} {
			continue
		}
		n, r := largest(t, s, ratio)
		got := measure(t, r.Module)
		told := t.Logf
		if got.CPU > mostCPU || got.Bytes > mostBytes || got.Error != "" {
			told = t.Errorf
		}
		told("n %7d m %7d: %4d KB took %4.1f s and %3d MB, predicted %4.1f s and %3d MB %s", n*ratio[0], n*ratio[1], len(r.Module)>>10,
			got.CPU.Seconds(), got.Bytes>>20, r.Weight.Time().Seconds(), r.Weight.Bytes>>20, got.Error)
		if err := within(t, r); err != nil {
			t.Logf("in a process of its own: %v", err)
		}
	}
}

// product reports whether the shape has two numbers.
func (s *shape) product() bool {
	return strings.HasPrefix(s.name, "random ") || strings.Contains(s.name, " across ") || strings.Contains(" "+s.name, " n ") || strings.HasPrefix(s.name, "functions")
}

// largest returns the largest module of a shape that is accepted, within an eighth.
func largest(t *testing.T, s shape, ratio [2]int) (n int, best *instrument.Rewritten) {
	t.Helper()
	accepted := func(try int) bool {
		module := s.make(try*ratio[0], try*ratio[1])
		if len(module) > 7_000_000 {
			return false
		}
		r, err := rewrite(module)
		if err != nil {
			return false
		}
		n, best = try, r
		return true
	}
	step := 8
	for accepted(step) {
		step *= 2
	}
	for low, high := step/2, step; high-low > max(low/8, 1); {
		if middle := (low + high) / 2; accepted(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	if best == nil {
		t.Fatal("no module of this shape is accepted")
	}
	return n, best
}

// Modules that used to take a gigabyte or more are refused at once, with the reason.
// Proves: Compiling is bounded
func TestRefused(t *testing.T) {
	t.Parallel()
	across := func(n, m int) []byte {
		var c code
		for i := range n {
			c.load(i)
		}
		for range m {
			c.op(0x20, 0, 0x04, 0x40, 0x0b)
		}
		c.fold(n)
		return plan{}.module(c.b)
	}
	for name, c := range map[string]struct {
		module []byte
		want   string
	}{
		"28 KB":  {across(3_000, 3_000), "many values are kept across many branches"},
		"80 KB":  {across(9_000, 9_000), "many values are kept across many branches"},
		"771 KB": {across(100_000, 1), "many values are kept across many branches"},
		"locals": {joins[4].make(300, 300), "many locals are set on many branches"},
		"ifs":    {across(1, 200_000), "it has very many branches"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, err := rewrite(c.module)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "function 2, code section") {
				t.Errorf("%d KB: got %v, want an error with %q", len(c.module)>>10, err, c.want)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestPredicted compares the predicted cost with the measured one, and leaves room for a busy machine.
// Proves: Compiling is bounded
func TestPredicted(t *testing.T) {
	if testing.Short() || testkit.Race(t) {
		t.Skip("compiles for some seconds, and several times as long with the race detector")
	}
	for _, s := range []shape{shapes()[0], joins[0], joins[3], lines[8]} {
		n, best := 8, (*instrument.Rewritten)(nil)
		for ; best == nil || best.Weight.Time() < 300*time.Millisecond; n *= 2 {
			r, err := rewrite(s.make(n, n))
			if err != nil {
				t.Fatal(err)
			}
			best = r
		}
		got := measure(t, best.Module)
		if got.Error != "" || got.CPU > 4*best.Weight.Time() || got.CPU < best.Weight.Time()/10 || got.Bytes > 3*best.Weight.Bytes {
			t.Errorf("%s: took %v and %d MB, predicted %v and %d MB %s", s.name, got.CPU, got.Bytes>>20, best.Weight.Time(), best.Weight.Bytes>>20, got.Error)
		}
	}
}

// TestRealModules compiles large real modules, which must be accepted. make attack-compile puts them into the folder.
func TestRealModules(t *testing.T) {
	folder, ok := os.LookupEnv("TOOLSRV_REAL_MODULES")
	if !ok {
		t.Skip("needs modules that others made: run make attack-compile")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.wasm"))
	if err != nil || len(files) < 5 {
		t.Fatalf("got %d modules in %s, %v", len(files), folder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			module, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := rewrite(module)
			if err != nil {
				t.Fatal(err)
			}
			got := measure(t, r.Module)
			t.Logf("%4.1f MB took %4.1f s and %3d MB, predicted %4.1f s and %3d MB %s", float64(len(module))/1e6, got.CPU.Seconds(), got.Bytes>>20,
				r.Weight.Time().Seconds(), r.Weight.Bytes>>20, got.Error)
			if got.Bytes > mostBytes || got.Error != "" {
				t.Error("took too much")
			}
		})
	}
}
