package wasmbin_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

func TestParseGoModule(t *testing.T) {
	t.Parallel()
	m, err := wasmbin.Parse(wasmtest.BuildGuest(t))
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := m.Export("toolsrv_call"); !ok || e.Type.String() != "(i32) -> (i32)" {
		t.Errorf("toolsrv_call: got %v, %v", e, ok)
	}
	if e, ok := m.Export("_initialize"); !ok || e.Type.String() != "() -> ()" {
		t.Errorf("_initialize: got %v, %v", e, ok)
	}
	if memories := m.Memories(); len(memories) != 1 || memories[0].Imported {
		t.Errorf("memories: got %+v", memories)
	}
	for _, i := range m.Imports() {
		if i.Module != "wasi_snapshot_preview1" || i.Kind != wasmbin.KindFunction {
			t.Errorf("import %+v", i)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	module := wasmtest.BuildGuest(b)
	b.SetBytes(int64(len(module)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wasmbin.Parse(module); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCustom(b *testing.B) {
	module, err := wasmbin.SetCustom(wasmtest.BuildGuest(b), "toolsrv.manifest", []byte("{}"))
	if err != nil {
		b.Fatal(err)
	}
	m, err := wasmbin.Parse(module)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := m.Custom("toolsrv.manifest"); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkSetCustom(b *testing.B) {
	module := wasmtest.BuildGuest(b)
	content := []byte("{}")
	b.SetBytes(int64(len(module)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wasmbin.SetCustom(module, "toolsrv.manifest", content); err != nil {
			b.Fatal(err)
		}
	}
}
