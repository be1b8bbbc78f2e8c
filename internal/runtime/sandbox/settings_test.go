package sandbox_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A settingsLog has the function touch record the settings of each run.
type settingsLog struct {
	mu     sync.Mutex
	starts []string
	calls  map[string]int
}

func (l *settingsLog) set() *hostcall.Set {
	return &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: func(c *hostcall.Call, _ []uint64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !c.Serving() {
			l.starts = append(l.starts, string(c.Settings()))
			return
		}
		l.calls[string(c.Settings())]++
	}}}}
}

// TestSettings has one module with three settings, whose tools are called at the same time. Each call and each start sees its own program's settings.
// Each program starts once, and they share the code.
// Proves: Nothing without a grant
func TestSettings(t *testing.T) {
	t.Parallel()
	l := settingsLog{calls: map[string]int{}}
	e := sandboxtest.Engine(t, sandbox.Config{Imports: append(abi1.Sets(), l.set())})
	p, err := e.Load(toucher(""), withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	all := []string{"", `{"n":1}`, `{"n":2}`}
	var calls sync.WaitGroup
	for _, settings := range all {
		with := []byte(settings)
		if settings == "" {
			with = nil
		}
		other, err := p.With(with)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		copy(with, "xxxx") // the slice belongs to the caller, who may change it
		tool := other.Tool("x", toolEnds, limits.Limits{})
		for range 2 {
			calls.Go(func() {
				for range 10 {
					if _, err := tool.Call(t.Context(), sandbox.CallSpec{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	calls.Wait()
	if got, want := fmt.Sprint(l.calls), fmt.Sprint(map[string]int{"": 20, all[1]: 20, all[2]: 20}); got != want {
		t.Errorf("got the settings %s, want %s", got, want)
	}
	if len(l.starts) != 3 {
		t.Errorf("started with %q, want each once", l.starts)
	}
	s := e.State()
	if s.Modules != 3 || s.Snapshots != 3 || s.Code[sandbox.CodeLoaded] != 3 {
		t.Errorf("got %+v, want three modules with a snapshot each", s)
	}
	if again, err := p.With([]byte(all[1])); err != nil {
		t.Error(err)
	} else if again.Close(); len(l.starts) != 3 {
		t.Error("the same settings make another program")
	}
}

// TestSettingsOfEngine has modules of one engine with settings of their own. They begin with the engine's initialised state, which has
// seen no settings.
// Proves: Nothing without a grant
func TestSettingsOfEngine(t *testing.T) {
	t.Parallel()
	touch := func(c *hostcall.Call, stack []uint64) { stack[0] = uint64(len(c.Settings())) }
	set := &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: touch}}}
	e := sandboxtest.Engine(t, sandbox.Config{Imports: append(abi1.Sets(), set)})
	// A call's result is two digits: what touch said when the module was warmed, and when the engine was initialised.
	engine := []byte("\x00asm\x01\x00\x00\x00")
	engine = append(engine, section(1, []byte("\x03\x60\x00\x00\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7f\x00"))...)
	engine = append(engine, section(2, []byte("\x02\x06toy_v1\x05touch\x00\x01\x0atoolsrv_v1\x0coutput_write\x00\x02"))...)
	engine = append(engine, section(3, []byte{3, 0, 0, 1})...)
	engine = append(engine, section(5, []byte{1, 0, 1})...)
	engine = append(engine, section(6, []byte("\x01\x7f\x00\x41\x10\x0b"))...)
	engine = append(engine, section(7, []byte("\x05\x06memory\x02\x00\x0etoolsrv_bundle\x03\x00\x0b_initialize\x00\x02\x0ctoolsrv_warm\x00\x03\x0ctoolsrv_call\x00\x04"))...)
	engine = append(engine, section(10, []byte("\x03"+
		"\x0e\x00\x41\x01\x41\x00\x10\x00\x41\x30\x6a\x3a\x00\x00\x0b"+
		"\x0e\x00\x41\x00\x41\x00\x10\x00\x41\x30\x6a\x3a\x00\x00\x0b"+
		"\x0a\x00\x41\x00\x41\x02\x10\x01\x41\x00\x0b"))...)
	parsed, err := wasmbin.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	module, err := parsed.AppendData(16, []byte("bundle"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Load(module, withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, settings := range []string{`{}`, `{"a":1}`} {
		with, err := p.With([]byte(settings))
		if err != nil {
			t.Fatal(err)
		}
		defer with.Close()
		out, err := with.Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{})
		if want := fmt.Sprint(10 * len(settings)); err != nil || string(out) != want {
			t.Errorf("with the settings %s: got %s, %v, want %s", settings, out, err, want)
		}
	}
}

// TestSettingsGo gives up holds on programs with settings, in any order, while their tools are called.
// Proves: Nothing without a grant
func TestSettingsGo(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	for _, name := range []string{"small", "engine"} {
		module := testkit.Fixture(t, "wat/good/"+name)
		p, err := e.Load(module, abi1.Modules()...)
		if err != nil {
			t.Fatal(err)
		}
		with, err := p.With([]byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		without, err := with.With(nil)
		if err != nil {
			t.Fatal(err)
		}
		tools := []*sandbox.Tool{with.Tool("with", 0, limits.Limits{}), without.Tool("without", 0, limits.Limits{})}
		with.Close()
		var outputs [][]byte
		for _, tool := range tools {
			output, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`{}`)})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			outputs = append(outputs, output)
		}
		if !bytes.Equal(outputs[0], outputs[1]) {
			t.Errorf("%s: got %s and %s", name, outputs[0], outputs[1])
		}
		if without.Close(); e.State().Modules != 0 {
			t.Errorf("%s: %d modules are left", name, e.State().Modules)
		}
	}
}
