package sandbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// Proves: Nothing without a grant
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	tests := []struct{ name, want string }{
		{"import_module", `the import "env"."abort" is not offered: the modules toolsrv_v1 and wasi_snapshot_preview1 are`},
		{"import_function", `the import "toolsrv_v1"."open_file" is not offered: toolsrv_v1 has deadline, fail, input_read, input_size, log, output_write, progress`},
		{"import_mistyped", `is declared as (i64) -> (), but offered as (i32, i32, i32) -> ()`},
		{"import_memory", "link without --import-memory"},
		{"import_global", `the global "env"."g" is imported`},
		{"import_table", `the table "env"."t" is imported`},
		{"memory_missing", "declare one"},
		{"memory_unexported", `export it as "memory"`},
		{"memory_mistyped", "it must be the memory"},
		{"memory_shared", "build without threads"},
		{"memory_two", "without multi-memory"},
		{"memory_64", "build for wasm32"},
		{"export_missing", "neither an export toolsrv_call (i32) -> (i32) nor _start () -> ()"},
		{"call_mistyped", "the export toolsrv_call is declared as (i64) -> (i32): it must be (i32) -> (i32)"},
		{"call_global", "the export toolsrv_call is a global: it must be a function"},
		{"start_mistyped", "the export _start is declared as (i32) -> (): it must be () -> ()"},
		{"initialize_mistyped", "the export _initialize is declared as () -> (i32)"},
		{"warm_mistyped", "the export toolsrv_warm is declared as (i32) -> ()"},
		{"describe_mistyped", "the export toolsrv_describe is declared as () -> (): it must be () -> (i32)"},
		{"table_large", "the limit is 131072"},
		{"tables_many", "the limit is 8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := e.Load(testkit.Fixture(t, "wat/"+"refused/"+test.name), abi1.Modules()...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestLoadRefusesBytes(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	good := testkit.Fixture(t, "wat/good/stages")
	for cut := range good {
		p, err := e.Load(good[:cut], abi1.Modules()...)
		if err != nil {
			continue
		}
		// A file that is cut right after a section is complete if only custom sections are missing.
		if err := p.Compile(t.Context()); err != nil {
			t.Errorf("the first %d of %d bytes are loaded, but Compile says %v", cut, len(good), err)
		}
		p.Close()
	}
	if _, err := e.Load(wasmbin.AppendCustom(good, "large", make([]byte, sandbox.MaxModule)), abi1.Modules()...); err == nil || !strings.Contains(err.Error(), "the limit is 64 MiB") {
		t.Errorf("got %v, want an error with the limit", err)
	}
}

func TestProgramTells(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	tests := []struct {
		name               string
		command, describes bool
	}{{"good/echo", false, false}, {"good/stages", false, true}, {"good/command", true, false}}
	for _, test := range tests {
		p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/"+test.name))
		if p.Command() != test.command || p.Describes() != test.describes {
			t.Errorf("%s: got Command %t, Describes %t, want %t, %t", test.name, p.Command(), p.Describes(), test.command, test.describes)
		}
		if len(p.Digest()) != 64 {
			t.Errorf("%s: got digest %q, want 64 digits", test.name, p.Digest())
		}
	}
}

func TestLoadAfterClose(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/echo"))
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load(testkit.Fixture(t, "wat/good/echo"), abi1.Modules()...); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Load: got %v, want ErrClosed", err)
	}
	_, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte(`{}`)})
	wantError(t, err, sandbox.Cancelled, "shutting down")
	wantError(t, p.Compile(t.Context()), sandbox.Cancelled, "shutting down")
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
