// Package guest has the modules that the benchmarks run, as `make bench-guests` has built them.
package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// The names of the modules, for Read.
const (
	Small        = "small"         // Rust: tool 0 adds
	Reach        = "reach"         // Rust: uses capabilities
	Odd          = "odd"           // Rust: the tools Grow, Trap and Spin
	RustCPU      = "rustcpu"       // Rust: the tools of CPU
	RustCPUSmall = "rustcpu_small" // the same, compiled for size
	Go           = "goadd"         // Go with the SDK: tool 0 adds
	GoCPU        = "gocpu"         // Go with the SDK: the tools of CPU
	Extism       = "extism"        // Go: the work of the module Go, as a plugin for Extism
)

// The tools of Odd.
const (
	Grow = iota // grows its memory by a little, and writes to it
	Trap
	Spin     // never returns
	GrowMega // grows its memory by a megabyte, and writes to it
)

// CPU returns the names of the tools of RustCPU and GoCPU, in the order of their numbers.
func CPU() []string { return []string{"hash", "sort", "json", "matrix"} }

// Input is an input of the tool add, and Output its output.
const (
	Input  = `{"a": 2, "b": 3}`
	Output = `5`
)

// Parameters is the schema of add.
const Parameters = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`

// A Shelf is the directory of the built modules.
type Shelf string

// Read returns a module.
func (s Shelf) Read(name string) ([]byte, error) {
	module, err := os.ReadFile(filepath.Join(string(s), name+".wasm"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: build it with `make bench-guests`", err)
	}
	return module, err
}

// Path returns the path of a module.
func (s Shelf) Path(name string) string { return filepath.Join(string(s), name+".wasm") }

// variant is the constant in small.rs that Variant replaces.
const variant = 0x5eed5eed

// Variant returns small with a different constant in its code, so that no two variants share compiled code. n is below 1<<24.
func Variant(small []byte, n int) ([]byte, error) {
	from, to := constant(variant), constant(1<<28+int32(n))
	if found := bytes.Count(small, from); found != 1 || len(from) != len(to) {
		return nil, fmt.Errorf("the constant of the small guest is there %d times, not once", found)
	}
	return bytes.Replace(small, from, to, 1), nil
}

// constant returns i32.const n as code.
func constant(n int32) []byte {
	code := []byte{0x41}
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(code, b)
		}
		code = append(code, b|0x80)
	}
}

// Describe returns module with a manifest of the tools, which have the same parameters and the namespace bench.
func Describe(module []byte, parameters string, tools ...string) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString(`{"abi":1,"namespace":"bench","tools":[`)
	for i, name := range tools {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"name":%q,"description":"A tool of the benchmarks.","parameters":%s}`, name, parameters)
	}
	text.WriteString(`]}`)
	return wasmbin.SetCustom(module, manifest.Section, text.Bytes())
}

// DescribeReach returns the module Reach with its manifest. Its tools are reach/fetch, which sends requests to a port of this machine, get, gets, set,
// call, and nothing.
func DescribeReach(module []byte, port int) ([]byte, error) {
	var tools []string
	for _, name := range []string{"fetch", "get", "gets", "set", "call", "nothing"} { // the order of the guest's tools
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Measured.","parameters":{"type":"object"}}`, name))
	}
	return wasmbin.SetCustom(module, manifest.Section, fmt.Appendf(nil,
		`{"abi":1,"namespace":"reach","needs":{"http":["http://127.0.0.1:%d"],"kv":true,"tools":["bench/add"]},"tools":[%s]}`, port, strings.Join(tools, ",")))
}

// FillSmall writes the small guest to directory, as the tool bench/add.
func (s Shelf) FillSmall(directory string) error {
	module, err := s.Read(Small)
	if err == nil {
		module, err = Describe(module, Parameters, "add")
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, "add.wasm"), module, 0o600)
}

// Fill writes n variants of the small guest to directory, as the tools bench/add0 and so on.
func (s Shelf) Fill(directory string, n int) error {
	small, err := s.Read(Small)
	if err != nil {
		return err
	}
	for i := range n {
		module, err := Variant(small, i)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("add%d", i)
		if module, err = Describe(module, Parameters, name); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(directory, name+".wasm"), module, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// FillNamespaces writes n files to directory, each with that many tools in a namespace of its own, such as n07/t42. All are the small guest, and
// share its code.
func (s Shelf) FillNamespaces(directory string, n, each int) error {
	small, err := s.Read(Small)
	if err != nil {
		return err
	}
	for file := range n {
		var text bytes.Buffer
		fmt.Fprintf(&text, `{"abi":1,"namespace":"n%02d","tools":[`, file)
		for i := range each {
			if i > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, `{"name":"t%02d","description":"A tool with a description that says what it does.","parameters":%s}`, i, Parameters)
		}
		text.WriteString(`]}`)
		module, err := wasmbin.SetCustom(small, manifest.Section, text.Bytes())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(directory, fmt.Sprintf("n%02d.wasm", file)), module, 0o600); err != nil {
			return err
		}
	}
	return nil
}
