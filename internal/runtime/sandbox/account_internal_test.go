package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// kin returns programs that differ from p in their data, and so share nothing with it.
func kin(t *testing.T, e *Engine, module []byte, n int) []*Program {
	t.Helper()
	all := make([]*Program, n)
	for k := range all {
		own := bytes.Clone(module)
		at := bytes.LastIndex(own, []byte("10")) // the data of hoard.wat
		if at < 0 {
			t.Fatal("the module has no data to change")
		}
		own[at+1] = byte(k)
		all[k] = loadInternal(t, e, own)
	}
	return all
}

func hoard(t *testing.T) []byte {
	t.Helper()
	return testkit.Fixture(t, "wat/hostile/hoard")
}

// watch runs f while it observes the account, and returns the most that the account held of a kind.
func watch(e *Engine, k account.Kind, f func()) (most int64) {
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			most = max(most, e.account.Held(k))
			select {
			case <-done:
				return
			case <-time.After(100 * time.Microsecond):
			}
		}
	}()
	f()
	close(done)
	<-watched
	return most
}

// TestMemoryInSum lets calls of one tool, or of many, take more memory together than there is. Each stays within its own limit. They take turns.
// Proves: Limits hold, one by one and in sum
func TestMemoryInSum(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	for _, test := range []struct {
		name         string
		tools, calls int
	}{{"one tool", 1, 12}, {"many tools", 12, 2}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, p := poolEngine(t, Config{Memory: limit}, "hostile/hoard")
			programs := append(kin(t, e, hoard(t), test.tools-1), p)
			var ok, refused int
			var mu sync.Mutex
			most := watch(e, account.Memory, func() {
				var wait sync.WaitGroup
				for _, p := range programs {
					tool := p.Tool("x", 20, limits.Limits{Timeout: time.Minute, Concurrency: test.calls})
					for range test.calls {
						wait.Go(func() {
							for range 2 {
								out, err := tool.Call(t.Context(), CallSpec{})
								mu.Lock()
								switch {
								case err == nil && string(out) == "1":
									ok++
								case isOverloaded(err):
									refused++
								default:
									t.Errorf("got %s, %v; want 1, or overloaded", out, err)
								}
								mu.Unlock()
							}
						})
					}
				}
				wait.Wait()
			})
			if most > limit {
				t.Errorf("at one time %d bytes were held; the limit is %d", most, limit)
			}
			if all := 2 * test.tools * test.calls; ok < all/2 {
				t.Errorf("%d of %d calls ended well and %d were refused, want at least half to wait for room and get it", ok, all, refused)
			}
		})
	}
}

// TestTooMuchMemory has calls that need more than all tools together may use. Waiting would not help.
// Proves: Limits hold, one by one and in sum
func TestTooMuchMemory(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		module string
		index  int32
		memory int64
		limits limits.Limits
	}{
		{"growing", "hostile/hoard", 20, 16 << 20, limits.Limits{}},
		{"to begin with", "hostile/hoard", 0, 64 << 10, limits.Limits{}},
		{"call stack", "hostile/recurse", 0, 1 << 20, limits.Limits{Stack: 8 << 20}},
		{"output", "hostile/output", 9, 10 << 20, limits.Limits{Output: 64 << 20}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, p := poolEngine(t, Config{Memory: test.memory}, test.module)
			for range 2 {
				_, err := p.Tool("x", test.index, test.limits).Call(t.Context(), CallSpec{})
				var told *Error
				if !errors.As(err, &told) || told.Outcome != ToolMemory || !strings.Contains(err.Error(), "raise server.memory") {
					t.Errorf("got %v, want an error that says which limit to raise", err)
				}
			}
			e.reclaim(nil, account.Memory, test.memory)
			if held := e.account.Held(account.Memory); held != 0 {
				t.Errorf("%d bytes are held by nobody", held)
			}
		})
	}
}

// TestHoarderLeavesRoom has one tool take all the memory that it can get, again and again. A call of another tool does not wait.
// Proves: Limits hold, one by one and in sum
func TestHoarderLeavesRoom(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{Memory: 64 << 20}, "hostile/hoard")
	other := kin(t, e, hoard(t), 1)[0].Tool("other", 1, limits.Limits{})
	if out, err := other.Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
		t.Fatalf("got %s, %v, want 1", out, err)
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	hoarder := p.Tool("hoarder", 7, limits.Limits{Timeout: time.Minute, Concurrency: 20})
	for range 20 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = hoarder.Call(t.Context(), CallSpec{}) // the test above checks how these calls end
				}
			}
		})
	}
	for range 20 {
		if out, err := other.Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
			t.Errorf("while another tool hoards memory: got %s, %v, want 1", out, err)
		}
	}
	close(stop)
	wait.Wait()
}

// TestMappingsInSum calls more tools than there are mappings for. The tools that were called least recently make room.
// Proves: Limits hold, one by one and in sum
func TestMappingsInSum(t *testing.T) {
	t.Parallel()
	const limit = 40
	e, _ := poolEngine(t, Config{Mappings: limit, CacheDir: t.TempDir()}, "hostile/hoard") // code can be loaded again from it
	programs := kin(t, e, hoard(t), 30)
	const side = 8 // calls at a time
	turns := make(chan struct{}, side)
	most := watch(e, account.Mappings, func() {
		for range 3 {
			var wait sync.WaitGroup
			for k, p := range programs {
				for range 2 {
					turns <- struct{}{}
					wait.Go(func() {
						defer func() { <-turns }()
						out, err := p.Tool(fmt.Sprint(k), 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), CallSpec{})
						if err != nil || string(out) != "1" {
							t.Errorf("tool %d: got %s, %v, want 1", k, out, err)
						}
					})
				}
			}
			wait.Wait()
		}
	})
	// Code that has just been compiled is counted even if there is no room.
	if most > limit+side || most < limit/2 {
		t.Errorf("at one time %d mappings were held, want many, but not more than %d", most, limit)
	}
}

// TestAddressesInSum calls more tools than there is address space for. Idle instances make room, and calls wait for each other. If a tool's own
// memory may be larger than that of all tools, its calls fail with that reason.
func TestAddressesInSum(t *testing.T) {
	t.Parallel()
	const reserve, limit = 32 << 20, 4 * 32 << 20
	e, _ := poolEngine(t, Config{Addresses: limit}, "hostile/hoard")
	programs := kin(t, e, hoard(t), 8)
	most := watch(e, account.Addresses, func() {
		var wait sync.WaitGroup
		for k, p := range programs {
			for range 3 {
				wait.Go(func() {
					out, err := p.Tool(fmt.Sprint(k), 1, limits.Limits{Memory: reserve, Timeout: time.Minute}).Call(t.Context(), CallSpec{})
					if err != nil || string(out) != "1" {
						t.Errorf("tool %d: got %s, %v, want 1", k, out, err)
					}
				})
			}
		}
		wait.Wait()
	})
	if most > limit || most < reserve {
		t.Errorf("at one time %d bytes were reserved, want many, but not more than %d", most, limit)
	}
	_, err := kin(t, e, hoard(t), 9)[8].Tool("x", 1, limits.Limits{Memory: 2 * limit}).Call(t.Context(), CallSpec{})
	var failed *Error
	if !errors.As(err, &failed) || failed.Outcome != ToolMemory || !strings.Contains(fmt.Sprint(failed.Err), "128 MiB of address space") {
		t.Errorf("a tool whose memory may be larger than that of all tools: got %v", err)
	}
}

// TestPeakIsExpected calls a tool whose recent calls needed much memory. It waits for room before it runs, not while it runs.
func TestPeakIsExpected(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "hostile/hoard")
	tool := p.Tool("x", 10, limits.Limits{})
	if out, err := tool.Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
		t.Fatalf("got %s, %v, want 1", out, err)
	}
	r := run{limits: &tool.limits, peak: &tool.peak}
	if got := r.expects(pageSize); got != 10<<20+pageSize {
		t.Errorf("after a call that took 10 MiB, %d bytes are expected", got)
	}
	for range 60 {
		r.needed(pageSize)
	}
	if got := r.expects(pageSize); got > 2*pageSize {
		t.Errorf("long after a call that took 10 MiB, %d bytes are expected", got)
	}
	r.needed(1 << 40)
	if got := r.expects(pageSize); got != tool.limits.Memory {
		t.Errorf("%d bytes are expected of a tool with a limit of %d", got, tool.limits.Memory)
	}
}

// TestElementsCount checks that an instance is counted together with its tables and element segments, which wazero allocates for each instance.
// Proves: Limits hold, one by one and in sum
func TestElementsCount(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{Memory: 10 << 20}, "good/fresh")
	if err := p.Compile(t.Context()); err != nil { // now it is known how large it is
		t.Fatal(err)
	}
	p.module.code.Native().Rewritten.Elements = 1 << 18
	var told *Error
	if _, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); !errors.As(err, &told) || told.Outcome != ToolMemory {
		t.Errorf("10 MiB of elements: got %v, want tool_memory", err)
	}
	p.module.code.Native().Rewritten.Elements = 1 << 10
	most := watch(e, account.Memory, func() {
		for range 1000 {
			if _, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil {
				t.Error(err)
			}
		}
	})
	if most < 40<<10+instanceSize {
		t.Errorf("an instance with 1,024 elements holds %d bytes", most)
	}
}

// TestInstanceCounts checks that an instance is counted even before a call has used it. What a call takes in addition to the memory, for its stack
// and its output, is counted, too.
// Proves: Limits hold, one by one and in sum
func TestInstanceCounts(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{}, "hostile/hoard")
	m, limits := p.module, inForce(limits.Limits{})
	m.allow(limits.Memory)
	r := &run{ctx: t.Context(), begun: time.Now(), deadline: time.Now().Add(time.Minute), limits: &limits}
	l := lease{module: m, begun: r.begun}
	if !l.begin(r) {
		t.Fatal("the engine is closed")
	}
	if err := l.prepare(r); err != nil {
		l.end(r)
		t.Fatal(err)
	}
	snapshot := e.account.Held(account.Memory) - l.instance.claimed
	l.end(r)
	if held := e.account.Held(account.Memory) - snapshot; held < instanceSize {
		t.Errorf("an instance that no call has used holds %d bytes, want %d at least", held, instanceSize)
	}
	l = lease{module: m, begun: r.begun}
	l.begin(r)
	i := l.instance
	i.call.begin(r)
	i.call.extend(1 << 20)
	i.call.extend(2 << 20)
	i.grow(4 << 20)
	if want := int64(7<<20 + instanceSize); i.claimed < want {
		t.Errorf("with 3 MiB in addition to 4 MiB of memory, %d bytes are held, want %d at least", i.claimed, want)
	}
	l.end(r)
}

// TestPanicGivesBack makes wazero panic while an instance is made. Afterwards nothing is held for the instance.
// Proves: Limits hold, one by one and in sum
func TestPanicGivesBack(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{}, "hostile/hoard")
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	code := e.account.Held(account.Mappings)
	p.module.code.Native().Runtime = nil
	var told *Error
	if _, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); !errors.As(err, &told) || told.Outcome != Internal {
		t.Errorf("got %v, want internal", err)
	}
	if memory, mappings := e.account.Held(account.Memory), e.account.Held(account.Mappings); memory != 0 || mappings != code {
		t.Errorf("%d bytes and %d mappings are held by nobody", memory, mappings-code)
	}
}

// TestDataCounts checks that code is counted together with its data segments, which are kept as long as the code.
// Proves: Limits hold, one by one and in sum
func TestDataCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{"in memory": {}, "from the cache": {CacheDir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := poolEngine(t, c, "hostile/hoard")
			segment := append([]byte("\x01\x00\x41\x00\x0b"), binary.AppendUvarint(nil, pageSize)...)
			segment = append(segment, bytes.Repeat([]byte("1"), pageSize)...)
			module := append(bytes.Clone(logs), 11) // the data section
			module = append(binary.AppendUvarint(module, uint64(len(segment))), segment...)
			p := loadInternal(t, e, module)
			if out, err := p.Tool("x", 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
				t.Fatalf("got %s, %v, want 1", out, err)
			}
			if held := e.account.Held(account.Code); held < pageSize {
				t.Errorf("%d bytes are held, the data segments have %d", held, pageSize)
			}
		})
	}
}

func isOverloaded(err error) bool {
	var told *Error
	return errors.As(err, &told) && told.Outcome == Overloaded
}
