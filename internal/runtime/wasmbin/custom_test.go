package wasmbin_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

func TestCustom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module []byte
		name   string
		want   string
		ok     bool
		err    string
	}{
		"there":             {whole, "first", "1", true, ""},
		"behind the others": {whole, "last", "2", true, ""},
		"not there":         {whole, "firs", "", false, ""},
		"empty":             {module(custom("a", "")), "a", "", true, ""},
		"no name":           {module(custom("", "x")), "", "x", true, ""},
		"two":               {module(custom("a", "1"), types, custom("a", "2")), "a", "", false, `two custom sections are named "a", at offsets 0x8 and 0x19: remove one`},
		"two of another":    {module(custom("a", "1"), custom("a", "2"), custom("b", "3")), "b", "3", true, ""},
		"as a section's":    {module(types), "type", "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmbin.Parse(c.module)
			if err != nil {
				t.Fatal(err)
			}
			got, ok, err := m.Custom(c.name)
			if c.err != "" {
				if err == nil || ok || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %q, %v, %v, want an error with %q", got, ok, err, c.err)
				}
				return
			}
			if string(got) != c.want || ok != c.ok || err != nil {
				t.Errorf("got %q, %v, %v, want %q, %v", got, ok, err, c.want, c.ok)
			}
		})
	}
}

// If a caller appends to a section's content, that must not change the module.
func TestCustomIsClipped(t *testing.T) {
	t.Parallel()
	before := slices.Clone(whole)
	m, err := wasmbin.Parse(before)
	if err != nil {
		t.Fatal(err)
	}
	content, _, _ := m.Custom("first")
	_ = append(content, 0xff)
	if !bytes.Equal(before, whole) {
		t.Error("an append to the content changed the module")
	}
}

func TestSetCustom(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100000)
	for name, c := range map[string]struct {
		module        []byte
		name, content string
		want          []byte
	}{
		"into nothing":   {module(), "a", "1", module(custom("a", "1"))},
		"last":           {module(custom("b", "2"), types), "a", "1", module(custom("b", "2"), types, custom("a", "1"))},
		"replaced":       {module(custom("a", "old"), types, custom("b", "2")), "a", "1", module(types, custom("b", "2"), custom("a", "1"))},
		"two replaced":   {module(custom("a", "old"), types, custom("a", "older")), "a", "1", module(types, custom("a", "1"))},
		"empty":          {module(types), "", "", module(types, custom("", ""))},
		"long":           {module(types), long, long, module(types, custom(long, long))},
		"padding stays":  {module([]byte{1, 0x84, 0, 1, 0x60, 0, 0}), "a", "", module([]byte{1, 0x84, 0, 1, 0x60, 0, 0}, custom("a", ""))},
		"names of ours":  {module(names), "name", "\x00\x02\x01m", module(custom("name", "\x00\x02\x01m"))},
		"%s in the name": {module(), "%s", "%d", module(custom("%s", "%d"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.module)
			got, err := wasmbin.SetCustom(c.module, c.name, []byte(c.content))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !bytes.Equal(c.module, before) {
				t.Error("the module was changed in place")
			}
		})
	}
}

// TestSum changes each byte of a module in turn. Whatever Rewrite reads changes the sum, and custom sections do not.
func TestSum(t *testing.T) {
	t.Parallel()
	plain := module(types, section(3, vec(b(0))), section(10, vec(b(2, 0, 0x0b))), section(11, vec([]byte("\x01\x03abc"))))
	sum := func(m []byte) [32]byte {
		parsed, err := wasmbin.Parse(m)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.Sum()
	}
	want := sum(plain)
	for _, name := range []string{"toolsrv.manifest", "producers", ""} {
		told, err := wasmbin.SetCustom(plain, name, []byte("anything"))
		if err != nil {
			t.Fatal(err)
		}
		if sum(told) != want {
			t.Errorf("a section %q changes the sum", name)
		}
	}
	if named := slices.Concat(plain, custom("name", "\x00\x02\x01m")); sum(named) == want {
		t.Error("names do not change the sum")
	}
	function, code := section(3, vec(b(0))), section(10, vec(b(2, 0, 0x0b)))
	if sum(module(types, function, section(8, b(0)), code)) == sum(module(types, function, section(12, b(0)), code)) {
		t.Error("a start of function 0 and a count of 0 data segments have the same sum")
	}
	between := custom("between", string(section(8, b(0)))) // the content of a custom section is not a section
	parts := [][]byte{types, function, code, section(11, vec([]byte("\x01\x03abc")))}
	for n := range len(parts) + 1 {
		if sum(module(slices.Insert(slices.Clone(parts), n, between)...)) != want {
			t.Errorf("a custom section at place %d changes the sum", n)
		}
	}
	changed := 0
	for n := range plain {
		other := slices.Clone(plain)
		other[n] ^= 1
		if parsed, err := wasmbin.Parse(other); err == nil {
			changed++
			if parsed.Sum() == want {
				t.Errorf("byte %d does not change the sum", n)
			}
		}
	}
	if changed < 3 {
		t.Errorf("%d changed modules are valid, want at least 3, those with changed data", changed)
	}
}

func TestSetCustomRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module        []byte
		name, content string
		want          string
	}{
		"no module":     {[]byte("#!/bin/sh"), "a", "", "not a WebAssembly module"},
		"broken module": {module(imports), "a", "", "type 1 is not declared"},
		"no UTF-8":      {module(), "\xff", "", `the custom section name "\xff" is not UTF-8`},
		"bad names":     {module(), "name", "\x01\x05\xff\xff\xff\xff\x0f", "4294967295 names do not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := wasmbin.SetCustom(c.module, c.name, []byte(c.content))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}
