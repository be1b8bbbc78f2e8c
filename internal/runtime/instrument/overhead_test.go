package instrument_test

import (
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

const stackSize = 64 << 20

// A pair is an original guest and the rewritten one, both ready to be called.
type pair struct {
	host            *host
	plain, metered  api.Module
	plainCompile    time.Duration
	meteredCompile  time.Duration
	before, written int
}

func newPair(t testing.TB, module []byte) *pair {
	t.Helper()
	ctx := t.Context()
	p := &pair{host: newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.host); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	compiled, err := p.host.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	p.plainCompile = time.Since(begun)
	if p.plain, err = p.host.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")); err != nil {
		t.Fatal(err)
	}
	rewritten, err := rewrite(module)
	if err != nil {
		t.Fatal(err)
	}
	p.before, p.written = len(module), len(rewritten.Module)
	begun = time.Now()
	if compiled, err = p.host.CompileModule(ctx, rewritten.Module); err != nil {
		t.Fatal(err)
	}
	p.meteredCompile = time.Since(begun)
	if p.metered, err = p.host.start(ctx, compiled, "", rewritten, stackSize); err != nil {
		t.Fatal(err)
	}
	if f := p.metered.ExportedFunction("_initialize"); f != nil {
		if _, err := f.Call(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run calls an export and returns its result and the time it took.
func run(t testing.TB, m api.Module, c cpuCall) (uint64, time.Duration) {
	t.Helper()
	if reset := m.ExportedFunction("reset"); reset != nil {
		if _, err := reset.Call(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	result, err := m.ExportedFunction(c.export).Call(context.Background(), c.arg)
	took := time.Since(begun)
	if err != nil {
		t.Fatalf("%s(%d): %v", c.export, c.arg, err)
	}
	return result[0], took
}

// Guests that compilers made give the same results after rewriting.
func TestRewriteGuests(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	for _, guest := range buildCPUGuests(t) {
		t.Run(guest.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, guest.module)
			t.Logf("%d bytes become %d; compiled in %v and %v", p.before, p.written, p.plainCompile, p.meteredCompile)
			for _, c := range guest.calls {
				c.arg = c.arg/8 + 8
				want, _ := run(t, p.plain, c)
				p.host.refills = 0
				got, took := run(t, p.metered, c)
				if got != want {
					t.Errorf("%s: got %d, want %d", c.export, got, want)
				}
				t.Logf("%s: %d slices in %v", c.export, p.host.refills, took)
			}
		})
	}
}

// BenchmarkOverhead reports, for each guest, the rewritten one's time divided by the original's. Each time is the best of many runs, in which the
// two take turns.
func BenchmarkOverhead(b *testing.B) {
	for _, guest := range buildCPUGuests(b) {
		p := newPair(b, guest.module)
		for _, c := range guest.calls {
			b.Run(guest.name+"/"+c.export, func(b *testing.B) {
				plain, metered := time.Duration(1<<62), time.Duration(1<<62)
				for b.Loop() {
					_, took := run(b, p.plain, c)
					plain = min(plain, took)
					p.host.refills = 0
					_, took = run(b, p.metered, c)
					metered = min(metered, took)
				}
				b.ReportMetric(float64(metered)/float64(plain), "ratio")
				b.ReportMetric(float64(plain.Microseconds())/1000, "plain-ms")
				b.ReportMetric(float64(metered.Microseconds())/float64(p.host.refills+1), "µs/slice")
			})
		}
	}
}
