package wasmbin_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// TestCompilingLoads has functions of many loads, each from an address of its own, and many blocks. At the end of each
// block wazero keeps a list of the addresses that it has checked: without a check of ours that makes it forget, the
// lists take loads × blocks × 32 bytes. It does not run in parallel, since it measures what is allocated.
func TestCompilingLoads(t *testing.T) {
	const load = "\x20\x00\x28\x02\x00\x21\x00" // local.get 0, i32.load, local.set 0
	for name, code := range map[string]string{
		"nothing else":   strings.Repeat(load, 100_000),
		"then if else":   strings.Repeat(load, 100_000) + strings.Repeat("\x20\x00\x04\x40\x05\x0b", 3_000),
		"between br_ifs": "\x02\x40" + strings.Repeat("\x20\x00\x0d\x00"+strings.Repeat(load, 14), 6_000) + "\x0b",
		"in loops":       strings.Repeat("\x03\x40"+strings.Repeat(load, 40)+"\x20\x00\x0d\x00\x0b", 1_500),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := wasmbin.Rewrite(program(1, []byte("\x00"+code+"\x41\x00\x0b")))
			if err != nil {
				t.Fatal(err)
			}
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err = h.instantiate(t.Context(), "", r, 1<<24); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1000 {
				t.Errorf("compiling %d KB of code allocated %d MB, want some hundreds", len(code)>>10, took)
			} else {
				t.Logf("%d MB", took)
			}
		})
	}
}
