package wasmbin_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A module with a memory of one page, and a global for each kind of initial value.
var (
	oneMemory = section(5, vec(b(0, 1)))
	globals   = section(6, vec(
		b(0x7f, 0, 0x41, 0x80, 0x80, 0x04, 0x0b), // 65536
		b(0x7f, 1, 0x41, 7, 0x0b),                // mutable
		b(0x7e, 0, 0x42, 7, 0x0b),                // i64
		b(0x7f, 0, 0x23, 0, 0x0b),                // another global's value
		b(0x7f, 0, 0x41, 5, 0x41, 1, 0x6a, 0x0b), // a sum
		b(0x7f, 0, 0x41, 0x7f, 0x0b),             // the last address
	))
	exports = section(7, vec(
		slices.Concat(str("plain"), b(3, 0)), slices.Concat(str("mutable"), b(3, 1)), slices.Concat(str("long"), b(3, 2)),
		slices.Concat(str("other"), b(3, 3)), slices.Concat(str("sum"), b(3, 4)), slices.Concat(str("last"), b(3, 5)),
		slices.Concat(str("memory"), b(2, 0))))
)

func TestConstant(t *testing.T) {
	t.Parallel()
	own, err := wasmbin.Parse(module(oneMemory, globals, exports))
	if err != nil {
		t.Fatal(err)
	}
	imported := section(2, vec(slices.Concat(str("env"), str("g"), b(3, 0x7f, 0))))
	behind, err := wasmbin.Parse(module(imported, section(6, vec(b(0x7f, 0, 0x41, 9, 0x0b))),
		section(7, vec(slices.Concat(str("imported"), b(3, 0)), slices.Concat(str("own"), b(3, 1))))))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		module *wasmbin.Module
		name   string
		want   uint32
		ok     bool
	}{
		{own, "plain", 65536, true},
		{own, "last", 0xffffffff, true},
		{own, "mutable", 0, false},
		{own, "long", 0, false},
		{own, "other", 0, false},
		{own, "sum", 0, false},
		{own, "memory", 0, false},
		{own, "none", 0, false},
		{behind, "own", 9, true},
		{behind, "imported", 0, false},
	} {
		if got, ok := c.module.Constant(c.name); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %d, %v, want %d, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestAppendData(t *testing.T) {
	t.Parallel()
	count := func(n byte) []byte { return section(12, b(n)) }
	hi := slices.Concat(b(0, 0x41, 0, 0x0b), str("hi"))
	added := slices.Concat(b(0, 0x41, 0x80, 0x80, 0x02, 0x0b), str("there")) // at 32768
	tail := custom("last", "2")
	for name, c := range map[string]struct {
		module, want []byte
	}{
		"first":           {module(oneMemory), module(oneMemory, section(11, vec(added)))},
		"second":          {module(oneMemory, data), module(oneMemory, section(11, vec(hi, added)))},
		"with a count":    {module(oneMemory, count(1), data, tail), module(oneMemory, count(2), section(11, vec(hi, added)), tail)},
		"count of none":   {module(oneMemory, count(0), tail), module(oneMemory, count(1), tail, section(11, vec(added)))},
		"with the others": {module(types, functions, oneMemory, code, data, tail), module(types, functions, oneMemory, code, section(11, vec(hi, added)), tail)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmbin.Parse(c.module)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.AppendData(32768, []byte("there"))
			if err != nil || !bytes.Equal(got, c.want) {
				t.Fatalf("got %x, %v, want %x", got, err, c.want)
			}
			if _, err := wasmbin.Parse(got); err != nil {
				t.Error(err)
			}
			if err := compiles(newWazero(t), got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAppendDataRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module  []byte
		address uint32
		size    int
		err     string
	}{
		"no memory":         {module(), 0, 1, "no memory"},
		"behind the memory": {module(oneMemory), 65536, 1, "does not fit"},
		"over its end":      {module(oneMemory), 65530, 7, "does not fit"},
		"around":            {module(oneMemory), 0xffffffff, 2, "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmbin.Parse(c.module)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := m.AppendData(c.address, make([]byte, c.size)); err == nil || got != nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %d bytes, %v, want an error with %q", len(got), err, c.err)
			}
		})
	}
	m, err := wasmbin.Parse(module(oneMemory))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.AppendData(65536-7, make([]byte, 7)); err != nil {
		t.Errorf("up to the last byte: %v", err)
	}
}
