package metrics_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolsrv/toolsrv/internal/metrics"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// shop returns a table with n tools, /a/t0 and so on.
func shop(tb testing.TB, n int) (*wasmtools.RouteTable, []*wasmtools.Tool) {
	tb.Helper()
	all := make([]*wasmtools.Tool, n)
	for i := range all {
		all[i] = gotool.New(fmt.Sprintf("a/t%d", i), "Does nothing.", func(context.Context, struct{}) (int, error) { return 0, nil })
	}
	table, err := wasmtools.NewRouteTable(all...)
	if err != nil {
		tb.Fatal(err)
	}
	return table, all
}

func record(t *wasmtools.Tool, took time.Duration, code wasmtools.Code) *invoke.Record {
	r := &invoke.Record{Door: "/", Tool: t, Took: took, Arguments: []byte("{}"), Result: []byte("0")}
	if t != nil {
		r.Path = t.Path()
	}
	if code != "" {
		r.Error = &wasmtools.Error{Code: code}
	}
	return r
}

// byPath returns the result of Tools by path.
func byPath(m *metrics.Metrics) map[string]metrics.Tool {
	all := map[string]metrics.Tool{}
	tools, _ := m.Tools(metrics.Steps)
	for _, t := range tools {
		all[t.Path] = t
	}
	return all
}

// TestHour counts calls for an hour: old steps are dropped, and calls of all versions of a tool are counted together.
func TestHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, tools := shop(t, 2)
		m := metrics.New(metrics.Options{Table: table})
		defer m.Close()
		time.Sleep(time.Millisecond) // so that steps end just before the calls below
		for i := range 200 {
			r := record(tools[0], time.Duration(i+1)*time.Millisecond, "")
			r.Fuel = 1_234_567
			m.Ended(t.Context(), r)
		}
		m.Ended(t.Context(), record(tools[0], time.Hour, wasmtools.CodeToolTimeout))
		m.Refused(record(tools[0], 0, wasmtools.CodeOverloaded))
		m.Refused(record(nil, 0, wasmtools.CodeNotFound)) // a path that a guest asked for
		if all := byPath(m); len(all) != 0 {
			t.Errorf("a step that is not over shows %v", all)
		}
		time.Sleep(metrics.Step)
		all := byPath(m)
		if got := slices.Sorted(maps.Keys(all)); fmt.Sprint(got) != "[/a/t0 other]" {
			t.Fatalf("got %v", got)
		}
		of := all["/a/t0"]
		last := of.Steps[metrics.Steps-1]
		if last.Calls != 202 || last.Failed != 2 || of.Minute != last {
			t.Errorf("got %+v and %+v", last, of.Minute)
		}
		if off := last.Median.Seconds() / 0.1; off < 0.87 || off > 1.13 {
			t.Errorf("the median is %v", last.Median)
		}
		if off := last.Slow.Seconds() / 0.2; off < 0.87 || off > 1.13 {
			t.Errorf("the 99th percentile is %v", last.Slow)
		}
		if off := float64(last.Fuel) / (200 * 1_234_567); off < 0.99 || off > 1.01 || of.Fuel != last.Fuel {
			t.Errorf("the calls burned %d and %d of fuel", last.Fuel, of.Fuel)
		}

		replaced := gotool.New("a/t0", "Does nothing yet.", func(context.Context, struct{}) (int, error) { return 0, nil })
		m.Ended(t.Context(), record(replaced, time.Second, ""))
		time.Sleep(metrics.Step)
		of = byPath(m)["/a/t0"]
		if of.Steps[metrics.Steps-1].Calls != 1 || of.Steps[metrics.Steps-2].Calls != 202 || of.Minute.Calls != 203 || of.Minute.Fuel != last.Fuel {
			t.Errorf("got %+v", of.Minute)
		}
		time.Sleep(6 * metrics.Step)
		if of = byPath(m)["/a/t0"]; of.Minute != (metrics.Point{}) {
			t.Errorf("after a minute got %+v", of.Minute)
		}
		time.Sleep(time.Hour)
		if all := byPath(m); len(all) != 0 {
			t.Errorf("after an hour got %v", all)
		}
	})
}

// TestBusiest checks that only the tools that are called most have figures of their own, and that a tool keeps its figures unless another one is
// called more often.
func TestBusiest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, tools := shop(t, 10)
		m := metrics.New(metrics.Options{Table: table, Tools: 3})
		defer m.Close()
		time.Sleep(time.Millisecond) // as above
		call := func(tool, times int) {
			for range times {
				m.Ended(t.Context(), record(tools[tool], time.Millisecond, ""))
			}
		}
		counted := func(want string) {
			t.Helper()
			time.Sleep(metrics.Step)
			got := m.Counted()
			slices.Sort(got)
			if fmt.Sprint(got) != want {
				t.Errorf("got %v, want %s", got, want)
			}
		}
		for i := range tools {
			call(i, 10)
		}
		counted("[/a/t0 /a/t1 /a/t2]")
		if all := byPath(m); all["/a/t0"].Minute.Calls != 10 || all[metrics.Others].Minute.Calls != 70 {
			t.Errorf("got %v", all)
		}
		call(0, 10)
		call(1, 10)
		call(2, 10)
		call(5, 19)
		counted("[/a/t0 /a/t1 /a/t2]")
		call(0, 10)
		call(1, 9)
		call(2, 10)
		call(5, 20)
		call(6, 17)
		counted("[/a/t0 /a/t2 /a/t5]")
		counted("[/a/t0 /a/t2 /a/t5]") // nobody calls anything

		// A tool that is no longer served loses its figures an hour after its last call.
		if err := table.Replace(tools[:5], nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		call(4, 1)
		counted("[/a/t0 /a/t2 /a/t4]")
	})
}

// TestHourIsBounded calls each of 10,000 tools: the figures take 8 MiB at most.
func TestHourIsBounded(t *testing.T) {
	synctest.Test(t, hourIsBounded) // a step ends only when the test waits for it
}

func hourIsBounded(t *testing.T) {
	table, tools := shop(t, 10_000)
	call := func(tool *wasmtools.Tool, m *metrics.Metrics) {
		r := record(tool, time.Millisecond, "")
		r.Fuel = 1_000_000
		m.Ended(t.Context(), r)
	}
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	m := metrics.New(metrics.Options{Table: table})
	defer m.Close()
	for _, tool := range tools[:1000] {
		call(tool, m)
	}
	time.Sleep(metrics.Step + time.Millisecond) // memory for fuel is allocated at the end of a step
	if mib := float64(heap()-before) / (1 << 20); mib > 8 {
		t.Errorf("the last hour of 1,000 tools takes %.1f MiB", mib)
	}
	for _, tool := range tools {
		call(tool, m)
	}
	time.Sleep(metrics.Step)
	if mib := float64(heap()-before) / (1 << 20); mib > 12 {
		t.Errorf("the last hour of 10,000 tools takes %.1f MiB", mib)
	}
	if n := len(m.Counted()); n != metrics.DefaultTools {
		t.Errorf("%d tools have figures", n)
	}
	runtime.KeepAlive(tools)
}

// TestNoAllocations checks that counting allocates nothing once a tool is known.
func TestNoAllocations(t *testing.T) {
	table, tools := shop(t, 1)
	m := metrics.New(metrics.Options{Table: table, Prometheus: true, Principals: true})
	defer m.Close()
	r := record(tools[0], time.Millisecond, "")
	r.Principal = wasmtools.Self()
	r.Uses = []wasmtools.Use{{Capability: "http", Count: 1, Sent: 10, Took: time.Millisecond}}
	if n := testing.AllocsPerRun(1000, func() { m.Ended(t.Context(), r) }); n >= 1 {
		t.Errorf("a call takes %v allocations", n)
	}
}

// TestCollect collects what was counted while calls go on. The registry checks the form of all metrics.
func TestCollect(t *testing.T) {
	t.Parallel()
	table, tools := shop(t, 5)
	m := metrics.New(metrics.Options{Table: table, Tools: 2, Prometheus: true, Principals: true})
	defer m.Close()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.Collector())
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 100 {
				r := record(tools[(g+i)%5], time.Duration(i)*time.Millisecond, []wasmtools.Code{"", wasmtools.CodeToolError}[i%2])
				r.Times = wasmtools.Times{Validate: 1, Ready: 5, Turn: 2, Compile: 1, Run: time.Second, Reset: 4}
				r.Fuel = 5
				r.Uses = []wasmtools.Use{{Capability: "http", Count: 2, Failed: 1, Refused: 1, Sent: 3, Received: 4, Took: time.Second}}
				m.Ended(t.Context(), r)
				m.Refused(record(tools[0], 0, wasmtools.CodeRateLimited))
				if i%50 == 0 {
					if _, err := registry.Gather(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			sums[f.GetName()] += one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"toolsrv_calls_total": 400, "toolsrv_call_duration_seconds": 400, "toolsrv_calls_refused_total": 400, "toolsrv_call_arguments_bytes_total": 800,
		"toolsrv_call_results_bytes_total": 400, "toolsrv_call_phase_seconds_total": 400.000004, "toolsrv_capability_uses_total": 800,
		"toolsrv_capability_uses_failed_total": 400, "toolsrv_capability_uses_refused_total": 400, "toolsrv_call_fuel_total": 2000, "toolsrv_capability_sent_bytes_total": 1200, "toolsrv_capability_received_bytes_total": 1600,
		"toolsrv_capability_seconds_total": 400, "toolsrv_principal_calls_total": 800, "toolsrv_principal_calls_failed_total": 600, "toolsrv_principal_calls_limited_total": 400,
	} {
		if got := sums[name]; got < want*0.999999999 || got > want*1.000000001 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// BenchmarkEnded measures counting a call, with the metrics for Prometheus and without.
func BenchmarkEnded(b *testing.B) {
	for _, full := range []bool{false, true} {
		b.Run(fmt.Sprintf("prometheus=%v", full), func(b *testing.B) {
			table, tools := shop(b, 1000)
			m := metrics.New(metrics.Options{Table: table, Prometheus: full, Principals: full})
			defer m.Close()
			r := record(nil, time.Millisecond, "")
			r.Times = wasmtools.Times{Validate: 1, Ready: 5, Run: time.Second, Reset: 4}
			r.Fuel = 100_000
			for i := 0; b.Loop(); i++ {
				r.Tool = tools[i%len(tools)]
				m.Ended(b.Context(), r)
			}
		})
	}
}

// BenchmarkGather collects the metrics of 1,000 tools.
func BenchmarkGather(b *testing.B) {
	table, tools := shop(b, 10_000)
	m := metrics.New(metrics.Options{Table: table, Prometheus: true})
	defer m.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collector())
	for _, tool := range tools {
		r := record(tool, time.Millisecond, "")
		r.Times = wasmtools.Times{Validate: 1, Ready: 5, Run: time.Second, Reset: 4}
		m.Ended(b.Context(), r)
	}
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
