package wasmbin_test

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

func TestParse(t *testing.T) {
	t.Parallel()
	m, err := wasmbin.Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	nullary := wasmbin.FuncType{Params: []wasmbin.ValueType{}, Results: []wasmbin.ValueType{}}
	binary := wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32, wasmbin.I64}, Results: []wasmbin.ValueType{wasmbin.F32}}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"imports", m.Imports(), []wasmbin.Import{
			{Module: "env", Name: "log", Kind: wasmbin.KindFunction, Type: binary},
			{Module: "env", Name: "g", Kind: wasmbin.KindGlobal, Global: wasmbin.GlobalType{Type: wasmbin.I32}},
		}},
		{"exports", m.Exports(), []wasmbin.Export{
			{Name: "memory", Kind: wasmbin.KindMemory},
			{Name: "run", Kind: wasmbin.KindFunction, Type: nullary},
			{Name: "log", Kind: wasmbin.KindFunction, Type: binary},
			{Name: "g", Kind: wasmbin.KindGlobal, Global: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}},
			{Name: "t", Kind: wasmbin.KindTable},
		}},
		{"memories", m.Memories(), []wasmbin.Memory{{Min: 1, Max: 4, HasMax: true}}},
		{"tables", m.Tables(), []wasmbin.Table{{Min: 1, Max: 2, HasMax: true}}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.what, c.got, c.want)
		}
	}
	if e, ok := m.Export("run"); !ok || e.Type.String() != "() -> ()" {
		t.Errorf("Export(run): got %v, %v", e, ok)
	}
	if e, ok := m.Export("rum"); ok {
		t.Errorf("Export(rum): got %v", e)
	}
}

func TestParseMemories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module []byte
		want   []wasmbin.Memory
	}{
		"none": {module(), []wasmbin.Memory{}},
		"imported": {module(section(2, vec(slices.Concat(str("e"), str("m"), b(2, 0, 3))))),
			[]wasmbin.Memory{{Imported: true, Min: 3}}},
		"imported, two own, shared": {module(section(2, vec(slices.Concat(str("e"), str("m"), b(2, 0, 3)))), section(5, vec(b(0, 1), b(3, 1, 2)))),
			[]wasmbin.Memory{{Imported: true, Min: 3}, {Min: 1}, {Min: 1, Max: 2, HasMax: true, Shared: true}}},
		"64 bits": {module(section(5, vec(b(5, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20)))),
			[]wasmbin.Memory{{Min: 1, Max: 1 << 47, HasMax: true, Is64: true}}},
		"4 GiB": {module(section(5, vec(b(1, 0x80, 0x80, 4, 0x80, 0x80, 4)))),
			[]wasmbin.Memory{{Min: 1 << 16, Max: 1 << 16, HasMax: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmbin.Parse(c.module)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Memories(); len(got) != len(c.want) || len(got) > 0 && !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Modules that must be refused, each with a part of the error.
var refused = map[string]struct {
	module []byte
	want   string
}{
	"nothing":                           {nil, "not a WebAssembly module"},
	"short header":                      {[]byte("\x00asm\x01"), "the version is cut off"},
	"other magic":                       {[]byte("\x7fELF\x01\x00\x00\x00"), "not a WebAssembly module"},
	"version 2":                         {[]byte("\x00asm\x02\x00\x00\x00"), "version 02 00 00 00 is not supported"},
	"component":                         {[]byte("\x00asm\x0d\x00\x01\x00"), "a component is not supported: build a core module"},
	"unknown section":                   {module(section(14)), "section id 14 is unknown"},
	"no size":                           {module(b(1)), "type section, offset 0x9: the section's size is cut off"},
	"long number":                       {module(section(1, b(0x80, 0x80, 0x80, 0x80, 0x80, 0))), "more bytes than its type allows"},
	"number overflows":                  {module(section(1, b(0xff, 0xff, 0xff, 0xff, 0x10))), "overflows its type"},
	"size overflows":                    {module(b(1, 0xff, 0xff, 0xff, 0xff, 0x1f)), "overflows its type"},
	"section cut off":                   {module(b(1, 5, 0)), "5 bytes are declared, but only 1 are left"},
	"section 4 GiB":                     {module(b(1, 0xff, 0xff, 0xff, 0xff, 0x0f)), "4294967295 bytes are declared, but only 0 are left"},
	"section too long":                  {module(section(1, vec(), b(0))), "1 bytes are left over"},
	"wrong order":                       {module(imports, types), "import section"},
	"order":                             {module(section(3, vec()), section(2, vec())), "import section, offset 0xb: the section comes too late"},
	"data count after code":             {module(section(10, vec()), section(12, b(0))), "comes too late"},
	"twice":                             {module(types, types), "a second type section"},
	"two name sections":                 {module(names, names), `a second "name" section`},
	"tag section":                       {module(section(13, vec())), "tag sections are not supported"},
	"custom name cut off":               {module(section(0, b(3, 'a'))), "a custom section's name of 3 bytes is cut off after 1"},
	"custom name beyond":                {module(section(0, b(3, 'a')), custom("x", "")), "a custom section's name of 3 bytes is cut off after 1"},
	"custom name not UTF-8":             {module(custom("\xff", "")), "a custom section's name is not UTF-8"},
	"custom without name":               {module(section(0)), "custom section, offset 0xa: a custom section's name is cut off"},
	"custom name with a percent":        {module(custom("name", "\x01\x01\x09"), custom("%s%d", "")), `custom "name" section, `},
	"four billion types":                {module(section(1, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 types do not fit into the 0 bytes"},
	"four billion parameters":           {module(section(1, b(1, 0x60, 0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 parameters do not fit"},
	"four billion imports":              {module(section(2, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 imports do not fit"},
	"four billion functions":            {module(section(3, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 functions do not fit"},
	"four billion tables":               {module(section(4, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 tables do not fit"},
	"four billion memories":             {module(section(5, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 memories do not fit"},
	"four billion globals":              {module(section(6, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 globals do not fit"},
	"four billion exports":              {module(section(7, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 exports do not fit"},
	"four billion segments":             {module(section(9, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 element segments do not fit"},
	"four billion elements":             {module(section(9, b(1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 elements do not fit"},
	"four billion expressions":          {module(section(9, b(1, 5, 0x70, 0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 elements do not fit"},
	"four billion bodies":               {module(section(10, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 bodies do not fit"},
	"four billion locals":               {module(types, functions, section(10, vec(append(leb(8), 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b)))), "more than 50000 locals are not supported"},
	"four billion runs":                 {module(types, functions, section(10, vec(append(leb(6), 0xff, 0xff, 0xff, 0xff, 0x0f, 0x0b)))), "4294967295 runs of locals do not fit"},
	"locals by the million":             {module(types, functions0(20), section(10, leb(20), slices.Repeat([]byte{6, 1, 0xd0, 0x86, 3, 0x7f, 0x0b}, 20))), "body 1: 100000 locals in"},
	"four billion data":                 {module(section(11, b(0xff, 0xff, 0xff, 0xff, 0x0f))), "4294967295 data segments do not fit"},
	"four billion bytes of data":        {module(section(11, b(1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f))), "a data segment of 4294967295 bytes is cut off after 0"},
	"four billion names":                {module(custom("name", "\x01\x05\xff\xff\xff\xff\x0f")), "4294967295 names do not fit"},
	"four billion functions named":      {module(custom("name", "\x02\x05\xff\xff\xff\xff\x0f")), "4294967295 functions with names do not fit"},
	"four billion local names":          {module(custom("name", "\x02\x07\x01\x00\xff\xff\xff\xff\x0f")), "4294967295 names do not fit"},
	"names beyond the subsection":       {module(custom("name", "\x01\x01\x01\x00\x01a")), `custom "name" section`},
	"names left over":                   {module(custom("name", "\x01\x03\x00\x00\x00")), "subsection 1 has 2 bytes left over"},
	"subsection cut off":                {module(custom("name", "\x09\x05")), "subsection 9: 5 bytes are declared, but only 0 are left"},
	"many custom sections":              {module(slices.Repeat(custom("", ""), 10_001)), "custom section, offset 0x7538: more than 10000 custom sections are not supported"},
	"a subsection twice":                {module(custom("name", "\x09\x00\x09\x00")), `custom "name" section, offset 0x11: a second subsection 9 is not supported`},
	"many exports":                      {module(types, functions, section(7, leb(100_001), make([]byte, 100_001))), "100001 exports are not supported: the limit is 100000"},
	"many values":                       {module(section(1, leb(1001), slices.Repeat(slices.Concat(b(0x60), leb(1000), slices.Repeat(b(0x7e), 1000), b(0)), 1001))), "more than 1000000 parameters and results in all types are not supported"},
	"many parameters":                   {module(section(1, b(1, 0x60), leb(1001), make([]byte, 1001), b(0))), "1001 parameters are not supported: the limit is 1000"},
	"recursive type":                    {module(section(1, vec(b(0x4e, 1, 0x60, 0, 0)))), "type form 0x4e is not supported"},
	"typed reference":                   {module(section(1, vec(b(0x60, 1, 0x64, 0, 0)))), "value type 0x64 in parameters is not supported"},
	"exception reference":               {module(section(1, vec(b(0x60, 1, 0x69, 0)))), "value type 0x69 in parameters is not supported"},
	"import of an undeclared type":      {module(section(2, vec(slices.Concat(str("e"), str("f"), b(0, 0))))), "import section, offset 0xb: type 0 is not declared: there are 0"},
	"import of a tag":                   {module(section(2, vec(slices.Concat(str("e"), str("t"), b(4, 0, 0))))), `import "t" from "e" has kind 4, which is not supported`},
	"import name not UTF-8":             {module(section(2, vec(slices.Concat(str("\xc0"), str("t"), b(0, 0))))), "an import's module is not UTF-8"},
	"function of an undeclared type":    {module(types, section(3, vec(b(2)))), "type 2 is not declared: there are 2"},
	"function without body":             {module(types, functions), "1 functions are declared, but 0 have a body"},
	"body without function":             {module(types, code), "0 functions are declared, but 1 have a body"},
	"body cut off":                      {module(types, functions, section(10, b(1, 9, 0, 0x0b))), "body 0: 9 bytes are declared, but only 2 are left"},
	"empty body":                        {module(types, functions, section(10, b(1, 0))), "the number of runs of locals is cut off"},
	"body without end":                  {module(types, functions, section(10, b(1, 2, 0, 0x01))), "body 0 does not end with the instruction end"},
	"table of numbers":                  {module(section(4, vec(b(0x7f, 0, 1)))), "reference type 0x7f is not supported"},
	"huge table":                        {module(section(4, vec(b(0x70, 0, 0x80, 0x80, 0x80, 0x20)))), "a table of 67108864 elements is not supported"},
	"table upside down":                 {module(section(4, vec(b(0x70, 1, 2, 1)))), "a table's minimum 2 is above its maximum 1"},
	"memory upside down":                {module(section(5, vec(b(1, 2, 1)))), "a memory's minimum 2 is above its maximum 1"},
	"memory above 4 GiB":                {module(section(5, vec(b(0, 0x81, 0x80, 4)))), "larger than its address space"},
	"memory of an unknown form":         {module(section(5, vec(b(8, 1)))), "a memory with limits of form 0x8 is not supported"},
	"global with an unknown mutability": {module(section(6, vec(b(0x7f, 2, 0x41, 0, 0x0b)))), "a global's mutability is 0x2"},
	"endless constant":                  {module(section(6, vec(b(0x7f, 0, 0x41, 0)))), "a constant expression is cut off"},
	"call in a constant":                {module(section(6, vec(b(0x7f, 0, 0x10, 0, 0x0b)))), "instruction 0x10 is not supported in a constant expression"},
	"long constant":                     {module(section(6, vec(b(0x7f, 0, 0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x0b)))), "an i32 constant has more bytes"},
	"export twice":                      {module(memories, section(7, vec(append(str("m"), 2, 0), append(str("m"), 2, 0)))), `two exports have the name "m"`},
	"export of nothing":                 {module(section(7, vec(append(str("f"), 0, 0)))), `export "f" is function 0, which is not declared: there are 0`},
	"export of kind 9":                  {module(section(7, vec(append(str("f"), 9, 0)))), `export "f" has kind 9`},
	"start of nothing":                  {module(section(8, b(0))), "function 0 is not declared"},
	"start with parameters":             {module(types, section(3, vec(b(1))), section(8, b(0)), bodies(1)), "the start function is (i32, i64) -> (f32)"},
	"element of form 8":                 {module(section(9, vec(b(8)))), "an element segment of form 8 is not supported"},
	"data of form 3":                    {module(section(11, vec(b(3)))), "a data segment of form 3 is not supported"},
	"data count differs":                {module(memories, section(12, b(2)), data), "the data count section says 2 segments, but the data section has 1"},
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmbin.Parse(c.module)
			if err == nil {
				t.Fatalf("got %+v, want an error with %q", m, c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q in it", err, c.want)
			}
			if got, want := errors.Is(err, wasmbin.ErrUnsupported), strings.Contains(c.want, "not supported"); want && !got {
				t.Errorf("%q is not ErrUnsupported", err)
			}
		})
	}
}

// A count that exceeds the bytes after it costs no memory. Any other count costs no more memory than those bytes. The test is not parallel, since
// it measures allocations.
func TestParseAllocatesNothingForNothing(t *testing.T) {
	for name, c := range refused {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := wasmbin.Parse(c.module)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+len(c.module)); got > most {
			t.Errorf("%s: %d bytes were allocated for %d (%v), want at most %d", name, got, len(c.module), err, most)
		}
	}
}

// A file that is cut at any length is an error, or a module that ends there.
func TestParseCutOff(t *testing.T) {
	t.Parallel()
	for n := range whole {
		if m, err := wasmbin.Parse(whole[:n:n]); err == nil {
			if _, again := wasmbin.Parse(append(whole[:n:n], custom("x", "")...)); again != nil {
				t.Errorf("the first %d bytes are a module (%v), but %v", n, m.Exports(), again)
			}
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"function": wasmbin.KindFunction.String(), "table": wasmbin.KindTable.String(), "memory": wasmbin.KindMemory.String(),
		"global": wasmbin.KindGlobal.String(), "kind 9": wasmbin.Kind(9).String(), "type 0x1": wasmbin.ValueType(1).String(),
		"(i32, i64, f32, f64, v128, funcref, externref) -> ()": wasmbin.FuncType{Params: []wasmbin.ValueType{
			wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64, wasmbin.V128, wasmbin.FuncRef, wasmbin.ExternRef}}.String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSections(t *testing.T) {
	t.Parallel()
	m, err := wasmbin.Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	end := 8
	for s := range m.Sections() {
		names = append(names, s.Name)
		if s.Offset != end {
			t.Errorf("section %s begins at %d, the one before ends at %d", s.Name, s.Offset, end)
		}
		end = s.Offset + s.Size
		if custom := s.Name == "first" || s.Name == "last" || s.Name == "name"; s.Custom != custom {
			t.Errorf("section %s: custom is %v", s.Name, s.Custom)
		}
	}
	want := "first type import function table memory global export start element data count code data name last"
	if got := strings.Join(names, " "); got != want || end != len(whole) {
		t.Errorf("got %s up to %d; want %s up to %d", got, end, want, len(whole))
	}
	for range m.Sections() {
		break // early
	}
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	// with returns a module with a function of that type, body and runs of locals.
	with := func(typ []byte, locals []byte, body ...byte) []byte {
		code := slices.Concat(locals, body, b(0x0b))
		return module(section(1, vec(b(0x60, 0, 0), typ)), section(3, vec(b(1))), section(10, vec(append(leb(len(code)), code...))))
	}
	nothing, none := b(0x60, 0, 0), b(0)
	for _, c := range []struct {
		name   string
		module []byte
		want   string
	}{
		{"empty", module(), ""},
		{"plain", with(nothing, none, 0x01), ""},
		{"two results", with(b(0x60, 0, 2, 0x7f, 0x7f), none, 0x00), "multivalue"},
		{"a block with parameters", with(b(0x60, 1, 0x7f, 0), none, 0x02, 1, 0x0b), "multivalue"},
		{"a block with an undeclared type", with(nothing, none, 0x02, 9, 0x0b), ""},
		{"a vector parameter", with(b(0x60, 1, 0x7b, 0), none), "simd128"},
		{"a vector local", with(nothing, b(1, 1, 0x7b)), "simd128"},
		{"a vector instruction", with(nothing, none, 0xfd, 77), "simd128"},
		{"a reference local", with(nothing, b(1, 1, 0x6f)), "reference-types"},
		{"ref.null", with(nothing, none, 0xd0, 0x70), "reference-types"},
		{"sign extension", with(nothing, none, 0xc0), "sign-ext"},
		{"conversions", with(nothing, none, 0xfc, 7), "nontrapping-fptoint"},
		{"memory.copy", with(nothing, none, 0xfc, 10, 0, 0), "bulk-memory"},
		{"table.size", with(nothing, none, 0xfc, 16, 0), "reference-types"},
		{"two", with(nothing, none, 0xfc, 11, 0, 0xc4), "bulk-memory sign-ext"},
		{"data count", whole, "bulk-memory"},
	} {
		m, err := wasmbin.Parse(c.module)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, err := m.Features(); err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	m, err := wasmbin.Parse(with(nothing, none, 0xfe, 0))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Features(); !errors.Is(err, wasmbin.ErrUnsupported) {
		t.Errorf("an unknown instruction: got %q, %v; want an error", got, err)
	}
}
