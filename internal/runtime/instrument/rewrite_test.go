package instrument_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

// A host runs modules, rewritten or not, and provides what rewritten ones import.
type host struct {
	wazero.Runtime
	slice   int32 // of fuel
	refills int
	left    int32 // fuel left when a slice is used up: below 0
	most    int   // refills until it panics; 0 means no bound
	onSlice func()
}

const (
	errStopped  = hostError("stopped")
	errOverflow = hostError("call stack used up")
)

type hostError string

func (e hostError) Error() string { return string(e) }

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	h := &host{Runtime: wazero.NewRuntimeWithConfig(t.Context(), config), slice: 100_000}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	i32 := []api.ValueType{api.ValueTypeI32}
	_, err := h.NewHostModuleBuilder(instrument.MeterModule).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
		if h.refills++; h.refills == h.most {
			panic(errStopped)
		}
		h.left = api.DecodeI32(stack[0])
		if h.onSlice != nil {
			h.onSlice()
		}
		stack[0] = api.EncodeI32(h.slice)
	}), i32, i32).Export(instrument.RefillFunc).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {
		panic(errOverflow)
	}), i32, i32).Export(instrument.OverflowFunc).
		Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// instantiate makes an instance of a rewritten module, as the sandbox does.
func (h *host) instantiate(ctx context.Context, name string, r *instrument.Rewritten, stack int32) (api.Module, error) {
	compiled, err := h.CompileModule(ctx, r.Module)
	if err != nil {
		return nil, err
	}
	return h.start(ctx, compiled, name, r, stack)
}

func (h *host) start(ctx context.Context, compiled wazero.CompiledModule, name string, r *instrument.Rewritten, stack int32) (api.Module, error) {
	m, err := h.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil {
		return nil, err
	}
	m.ExportedGlobal(instrument.FuelGlobal).(api.MutableGlobal).Set(uint64(uint32(h.slice)))
	m.ExportedGlobal(instrument.StackGlobal).(api.MutableGlobal).Set(uint64(uint32(stack)))
	for _, d := range r.Data {
		if !m.Memory().Write(d.Offset, d.Content) {
			return m, hostError("data segment out of bounds")
		}
	}
	if r.Start != "" {
		_, err = m.ExportedFunction(r.Start).Call(ctx)
	}
	return m, err
}

// Modules that Rewrite refuses, each with a part of the error.
func TestRewriteRefuses(t *testing.T) {
	t.Parallel()
	one := func(body string) []byte { return program(1, append([]byte{0}, body+"\x41\x00\x0b"...)) }
	kind := section(1, vec(b(0x60, 0, 0)))
	for name, c := range map[string]struct {
		module []byte
		want   string
	}{
		"no module":           {[]byte("#!/bin/sh"), "not a WebAssembly module"},
		"function":            {one("\x41\x00\x10\x01\x1a"), "function 0, code section, offset 0x3a: function 1 is not declared: there are 1"},
		"our import":          {one("\x10\x02"), "function 2 is not declared"},
		"local":               {one("\x20\x01\x1a"), "local 1 is not declared: there are 1"},
		"global":              {one("\x23\x00\x1a"), "global 0 is not declared: there are 0"},
		"global set":          {one("\x41\x00\x24\x00"), "global 0 is not declared"},
		"label":               {one("\x0c\x01"), "label 1 is not declared: there are 1"},
		"label in a table":    {one("\x41\x00\x0e\x01\x00\x02"), "label 2 is not declared"},
		"type":                {one("\x41\x00\x11\x01\x00"), "type 1 is not declared: there are 1"},
		"type of a block":     {one("\x02\x01\x0b"), "type 1 is not declared"},
		"negative block type": {one("\x02\xc0\x7f\x0b"), "negative number of 2 bytes"},
		"table":               {one("\x41\x00\x25\x01\x1a"), "table 1 is not declared: there are 1"},
		"data segment":        {one("\xfc\x09\x01"), "data segment 1 is not declared: the data count section says 1"},
		"element segment":     {one("\xfc\x0d\x01"), "element segment 1 is not declared: there are 1"},
		"no memory":           {module(kind, section(3, vec(b(0))), section(10, vec(append(leb(6), 0, 0x3f, 0, 0x1a, 0x01, 0x0b)))), "there is no memory"},
		"undeclared ref.func": {module(kind, section(3, vec(b(0))), section(8, b(0)), section(10, vec(append(leb(5), 0, 0xd2, 0, 0x1a, 0x0b)))), "no element segment, global or export"},
		"behind the end":      {one("\x0b"), "3 bytes are left over after the last end"},
		"no end":              {module(kind, section(3, vec(b(0))), section(10, vec(append(leb(4), 0, 0x02, 0x40, 0x0b)))), "an instruction is cut off"},
		"else":                {one("\x05"), "else without if"},
		"exceptions":          {one("\x06\x40\x0b"), "instruction 0x6 is not supported"},
		"tail call":           {one("\x12\x00"), "instruction 0x12 is not supported"},
		"atomics":             {one("\xfe\x03\x00"), "instruction 0xfe is not supported"},
		"bulk":                {one("\xfc\x20"), "instruction 0xfc 0x20 is not supported"},
		"relaxed vectors":     {one("\xfd\x80\x02"), "instruction 0xfd 0x80 0x2 is not supported"},
		"long vector":         {one("\xfd\x8c\x00"), "instruction 0xfd 0x8c 0x0 is not supported"},
		"second memory":       {one("\x3f\x01\x1a"), "memory 1 is not supported"},
		"alignment":           {one("\x41\x00\x28\x42\x00\x00\x1a"), "alignment of 2**66 is not supported"},
		"export":              {module(section(5, vec(b(0, 1))), section(7, vec(append(str("toolsrv.fuel"), 2, 0)))), `the export "toolsrv.fuel" begins with "toolsrv.", which is reserved for the host: rename it`},
		"import":              {module(kind, section(2, vec(append(append(str("toolsrv_meter"), str("x")...), 0, 0)))), `"x" is imported from "toolsrv_meter"`},
		"global in a segment": {module(section(5, vec(b(0, 1))), section(11, vec(append(b(0, 0x23, 0, 0x0b), str("x")...)))), "data segment 0 has an offset that is not supported"},
		"data without memory": {module(section(11, vec(append(b(0, 0x41, 0, 0x0b), str("x")...)))), "active, but there is no memory"},
		"large table":         {module(section(4, vec(append(b(0x70, 0), leb(131_073)...)))), "the module's tables have 131073 elements; the limit is 131072"},
		"globals":             {module(section(6, append(leb(10_001), bytes.Repeat(b(0x7f, 1, 0x41, 0, 0x0b), 10_001)...))), "the module has 10001 globals; the limit is 10000"},
		"elements":            {module(kind, section(3, vec(b(0))), section(9, append(b(1, 1, 0), append(leb(131_072), make([]byte, 131_072)...)...)), section(10, vec(append(leb(2), 0, 0x0b)))), "elements and element segments; the limit is 131072"},
		"element segments":    {module(section(9, append(leb(131_073), bytes.Repeat(b(1, 0, 0), 131_073)...))), "elements and element segments; the limit is 131072"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := rewrite(c.module)
			if err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want an error with %q", r, err, c.want)
			}
		})
	}
}

// Small functions that would take the compiler hours, or all memory.
// Proves: Compiling is bounded
func TestRewriteRefusesCompileBombs(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, and the race detector would take twenty times as long")
	}
	if testkit.Emulated() {
		t.Skip("the result depends only on the bytes, not on the processor")
	}
	repeat := func(n int, what, then string) []byte {
		return program(1, append([]byte{0}, strings.Repeat(what, n)+strings.Repeat(then, n)+"\x41\x00\x0b"...))
	}
	nops := func(n int) []byte { return body(strings.Repeat("\x01", n)) }
	targets := func(n int) []byte {
		return slices.Concat(b(0, 2, 0x40, 0x41, 0, 0x0e), leb(n), make([]byte, n+1), b(0x0b, 0x41, 0, 0x0b))
	}
	many := body(strings.Repeat("\x20\x00\x04\x40\x0b", 6_000))
	for name, c := range map[string]struct {
		module []byte
		want   string
	}{
		"nested blocks": {repeat(100_000, "\x02\x40", "\x0b"), "blocks are nested deeper than 20000"},
		"nested loops":  {repeat(100_000, "\x03\x40", "\x0b"), "nested deeper"},
		"ifs":           {repeat(30_000, "\x20\x00\x04\x40\x0b", ""), "because it has very many branches"},
		"targets":       {program(1, []byte("\x00\x02\x40\x20\x00\x0e\xc0\x84\x3d"+strings.Repeat("\x00", 1_000_001)+"\x0b\x41\x00\x0b")), "because it has very many branches"},
		"growing":       {program(1, []byte("\x00\x20\x00"+strings.Repeat("\x40\x00", 15_000)+"\x0b")), "because it has very many branches"},
		"roots":         {program(1, []byte("\x00\x44\x00\x00\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x9f", 1_000_000)+"\x1a\x41\x00\x0b")), "because it has very many branches"},
		"globals":       {module(section(1, vec(b(0x60, 0, 0))), section(3, vec(b(0))), section(6, append(leb(2000), bytes.Repeat(b(0x7f, 1, 0x41, 0, 0x0b), 2000)...)), section(10, vec(append(leb(4_002), []byte("\x00"+strings.Repeat("\x10\x00", 2000)+"\x0b")...)))), "many globals are read again after many calls"},
		"code":          {program(1, []byte("\x00\x20\x00"+strings.Repeat("\x40\x00", 2_500_000)+"\x0b")), "with metering added the module's code has more than 36 MB"},
		"functions":     {module(section(1, vec(b(0x60, 0, 0))), section(3, leb(300_001), make([]byte, 300_001)), section(10, leb(300_001), bytes.Repeat(b(2, 0, 0x0b), 300_001))), "the module has 300001 functions; the limit is 300000"},
		"much code":     {program(1, slices.Repeat([][]byte{nops(7_000_000)}, 6)...), "code section: the module's code has more than 36 MB"},
		"instructions":  {program(1, targets(7_000_000), targets(7_000_000), targets(5_990_000), nops(20_000)), "the module has more than 20000000 instructions"},
		"loops":         {repeat(1_100_000, "\x03\x40\x0b", ""), "more than 1048576 loops in a module"},
		"types":         {module(section(1, append(leb(1000), bytes.Repeat(slices.Concat(b(0x60), leb(300), bytes.Repeat(b(0x7e), 300), b(0)), 1000)...))), "the module's 1000 types with 300000 parameters and results would take too long, about 600ms"},
		"declared":      {module(section(1, vec(b(0x60, 0, 0))), section(3, leb(20_000), make([]byte, 20_000)), section(6, leb(10_000), bytes.Repeat(b(0x7f, 0, 0x41, 0, 0x0b), 10_000)), section(10, leb(20_000), bytes.Repeat(b(2, 0, 0x0b), 20_000))), "compiling the module's 20000 functions would take too much, about 4.2s"},
		"all together":  {program(1, many, many, many, many, many, many, many, many), "compiling the module's 8 functions would take too much"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			if _, err := rewrite(c.module); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestRewritten(t *testing.T) {
	t.Parallel()
	r, err := rewrite(module(
		section(1, vec(b(0x60, 0, 0))),
		section(2, vec(slices.Concat(str("env"), str("f"), b(0, 0)))),
		section(3, vec(b(0))),
		section(4, vec(b(0x70, 1, 1, 0xff, 0xff, 0xff, 0x7f))),
		section(5, vec(b(1, 2, 9))),
		section(6, vec(b(0x7f, 1, 0x41, 5, 0x0b), b(0x7f, 0, 0x41, 5, 0x0b), b(0x7e, 1, 0x42, 5, 0x0b), b(0x7d, 1, 0x43, 0, 0, 0, 0, 0x0b), b(0x7c, 1, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b))),
		section(7, vec(append(str("run"), 0, 1))),
		section(8, b(1)),
		section(10, vec(append(leb(4), 0, 0x10, 0, 0x0b))),
		section(11, vec(append(b(0, 0x41, 16, 0x0b), str("one")...), append(b(1), str("passive")...), append(b(2, 0, 0x41, 0x7f, 0x0b), str("two")...))),
		custom("toolsrv.manifest", "{}"), custom(".debug_info", "…"),
		custom("name", string(slices.Concat(b(1, 13), vec(append(b(0), str("imp")...), append(b(1), str("guest")...))))),
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []instrument.Global{{Name: "toolsrv.global.0", Type: wasmbin.I32}, {Name: "toolsrv.global.2", Type: wasmbin.I64}, {Name: "toolsrv.global.3", Type: wasmbin.F32}, {Name: "toolsrv.global.4", Type: wasmbin.F64}}
	if !slices.Equal(r.Globals, want) {
		t.Errorf("globals: got %v, want %v", r.Globals, want)
	}
	if len(r.Data) != 2 || r.Data[0].Offset != 16 || string(r.Data[0].Content) != "one" || r.Data[1].Offset != 1<<32-1 || string(r.Data[1].Content) != "two" {
		t.Errorf("data: got %v", r.Data)
	}
	if r.Start != "toolsrv.start" || r.Fresh != "" || r.MemoryMin != 2 || r.MemoryMax != 9 {
		t.Errorf("got start %q, fresh %q, memory %d to %d", r.Start, r.Fresh, r.MemoryMin, r.MemoryMax)
	}
	m, err := wasmbin.Parse(r.Module)
	if err != nil {
		t.Fatal(err)
	}
	if tables := m.Tables(); tables[0].Max != 131_072 {
		t.Errorf("got %+v, want a maximum of 131072", tables)
	}
	for _, gone := range []string{"toolsrv.manifest", ".debug_info"} {
		if _, ok, _ := m.Custom(gone); ok {
			t.Errorf("the section %s is still there", gone)
		}
	}
	names, ok, err := m.Custom("name")
	if err != nil || !ok || !bytes.Contains(names, slices.Concat(b(0), str("imp"), b(1), str("toolsrv.refill"), b(2), str("toolsrv.overflow"), b(3), str("guest"))) {
		t.Errorf("names: got %q, %v, %v", names, ok, err)
	}
	for _, e := range m.Exports() {
		if (e.Name == "run" || e.Name == "toolsrv.start") && e.Type.String() != "() -> ()" {
			t.Errorf("export %+v", e)
		}
	}
}

// Proves: Nothing is left of a call
func TestFresh(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ code, want string }{
		"nothing":    {"", ""},
		"table.get":  {i32(0) + "\x25\x00\x1a", ""},
		"table.set":  {i32(0) + "\xd0\x70\x26\x00", "table.set in function 0"},
		"table.grow": {"\xd0\x70" + i32(0) + "\xfc\x0f\x00\x1a", "table.grow in function 0"},
		"table.fill": {i32(0) + "\xd0\x70" + i32(0) + "\xfc\x11\x00", "table.fill in function 0"},
		"table.copy": {i32(0) + i32(0) + i32(0) + "\xfc\x0e\x00\x00", "table.copy in function 0"},
		"table.init": {i32(0) + i32(0) + i32(0) + "\xfc\x0c\x00\x00", "table.init in function 0"},
		"elem.drop":  {"\xfc\x0d\x00", "elem.drop in function 0"},
		"data.drop":  {"\xfc\x09\x00", "data.drop in function 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := rewrite(program(1, body(c.code)))
			if err != nil || r.Fresh != c.want {
				t.Errorf("got %+v, %v, want %q", r, err, c.want)
			}
		})
	}
	vector := append(b(0x7b, 1, 0xfd, 12), append(make([]byte, 16), 0x0b)...)
	if r, err := rewrite(module(section(6, vec(vector)))); err != nil || r.Fresh != "global 0 is a mutable v128" || len(r.Globals) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Long bulk instructions work in chunks, with the same result as in one piece. If they trap, they write nothing.
// Proves: A tool stops
func TestBulkInstructions(t *testing.T) {
	t.Parallel()
	const pages = 8
	three := func(op string) []byte {
		return []byte("\x00\x20\x00\x28\x02\x00\x20\x00\x28\x02\x04\x20\x00\x28\x02\x08" + op + "\x41\x00\x0b")
	}
	text := program(pages, three("\xfc\x0b\x00"), three("\xfc\x0a\x00\x00"), three("\xfc\x08\x00\x00"))
	h := newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	plain, err := h.InstantiateWithConfig(t.Context(), text, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := rewrite(text)
	if err != nil {
		t.Fatal(err)
	}
	metered, err := h.instantiate(t.Context(), "", r, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	h.slice = 10_000
	const end = pages << 16
	numbers := []uint32{0, 1, 12, 65_535, 65_536, 65_537, 100_000, 131_072, 199_999, 200_000, 200_001, 300_000, end - 65_537, end - 1, end, end + 1, 1 << 31, 1<<32 - 65_537, 1<<32 - 1}
	random := rand.New(rand.NewPCG(1, 2))
	pattern := make([]byte, end)
	for i := range pattern {
		pattern[i] = byte(i*7 + i>>8*13)
	}
	run := func(m api.Module, f string, args [3]uint32) ([]byte, string) {
		memory, _ := m.Memory().Read(0, end)
		copy(memory, pattern)
		for i, a := range args {
			m.Memory().WriteUint32Le(uint32(i*4), a)
		}
		_, err := m.ExportedFunction(f).Call(t.Context(), 0)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			return memory, first
		}
		return memory, ""
	}
	trapped, done := 0, 0
	for f, op := range map[string]string{"f0": "memory.fill", "f1": "memory.copy", "f2": "memory.init"} {
		for range 400 {
			args := [3]uint32{numbers[random.IntN(len(numbers))], numbers[random.IntN(len(numbers))], numbers[random.IntN(len(numbers))]}
			want, wantErr := run(plain, f, args)
			got, gotErr := run(metered, f, args)
			if !bytes.Equal(got, want) || gotErr != wantErr {
				t.Errorf("%s%v: got %q, want %q; memories are equal: %t", op, args, gotErr, wantErr, bytes.Equal(got, want))
			}
			if wantErr != "" {
				trapped++
			} else {
				done++
			}
		}
	}
	if trapped < 100 || done < 100 {
		t.Errorf("%d trapped, %d did not", trapped, done)
	}
}

func TestRefusedGrowIsCounted(t *testing.T) {
	t.Parallel()
	grow := "\x20\x00\x40\x00\x1a"
	r, err := rewrite(program(1, body(grow)))
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, wazero.NewRuntimeConfigCompiler().WithMemoryLimitPages(10))
	m, err := h.instantiate(t.Context(), "", r, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ pages, want uint64 }{{1, 0}, {8, 0}, {1, 1}, {1 << 31, 2}, {0, 2}} {
		if _, err := m.ExportedFunction("f0").Call(t.Context(), c.pages); err != nil {
			t.Fatal(err)
		}
		if got := m.ExportedGlobal(instrument.RefusedGlobal).Get(); got != c.want {
			t.Errorf("after a growth by %d pages: got %d, want %d", c.pages, got, c.want)
		}
	}
}

func BenchmarkRewrite(b *testing.B) {
	module := wasmtest.BuildGuest(b)
	b.SetBytes(int64(len(module)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rewrite(module); err != nil {
			b.Fatal(err)
		}
	}
}
