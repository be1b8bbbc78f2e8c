package weigh_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument/internal/weigh"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A measured is the predicted and the real size of a function's frame.
type measured struct{ told, real int }

// frames measures the functions of a module, and compiles it.
func frames(t *testing.T, module []byte) []measured {
	t.Helper()
	m, err := wasmbin.Parse(module)
	if err != nil {
		t.Fatal(err)
	}
	about := &weigh.Module{Functions: m.Functions()}
	for _, s := range m.Types() {
		about.Types = append(about.Types, weigh.Signature{Params: len(s.Params), Results: len(s.Results)})
	}
	real := nativeFrames(t, module)
	var all []measured
	ruler := weigh.NewRuler(about)
	code := m.Open(wasmbin.SectionCode)
	for i := range int(code.U32("bodies")) {
		size := int(code.U32("a body's size"))
		told, _, ok := ruler.Measure(m.Types()[about.Functions[m.ImportedFunctions()+i]], code.Data[code.Pos:code.Pos+size], 0)
		if !ok {
			told = -1
		}
		all = append(all, measured{told, real[i]})
		code.Pos += size
	}
	return all
}

// nativeFrames compiles a module and returns how much of the stack each of its functions asks for: a function compares that with what is left when it
// begins.
func nativeFrames(t *testing.T, module []byte) []int {
	t.Helper()
	dir := t.TempDir()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false).WithCompilationCache(cache))
	defer func() { _ = r.Close(t.Context()) }()
	if _, err := r.CompileModule(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	var file []byte
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			file, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The name of the format, the version of wazero, the number of functions and their offsets, the size of the code, the code.
	at := 7 + int(file[6])
	n := int(binary.LittleEndian.Uint32(file[at:]))
	offsets := file[at+4:]
	code := offsets[8*n+8:]
	all := make([]int, n)
	for i := range all {
		if all[i], err = nativeFrame(code[binary.LittleEndian.Uint64(offsets[8*i:]):]); err != nil {
			t.Fatalf("function %d: %v", i, err)
		}
	}
	return all
}

// nativeFrame finds in a function's first instructions how much of the stack it asks for.
func nativeFrame(code []byte) (int, error) {
	if runtime.GOARCH == "amd64" { // push rbp; mov rbp, rsp; sub rsp, n
		switch sub := [3]byte(code[4:7]); sub {
		case [3]byte{0x48, 0x83, 0xec}:
			return int(code[7]), nil
		case [3]byte{0x48, 0x81, 0xec}:
			return int(binary.LittleEndian.Uint32(code[7:])), nil
		}
		return 0, fmt.Errorf("it begins with % x", code[:8])
	}
	n := 0 // movz and movk x27, n; str x27, [x0, 64]
	for i := 0; i < 40*4; i += 4 {
		in := binary.LittleEndian.Uint32(code[i:])
		value, shift := int(in>>5&0xffff), in>>21&3*16
		switch {
		case in&0xff80001f == 0xd280001b:
			n = value << shift
		case in&0xff80001f == 0xf280001b:
			n |= value << shift
		case in&0xffe003e0 == 0xb20003e0&0xffe003e0 && in&0x1f == 0x1b: // orr x27, xzr, n: a pattern of bits
			return 0, fmt.Errorf("a pattern of bits in % x", code[i:i+4])
		case in == 0xf900201b:
			return n, nil
		}
	}
	return 0, fmt.Errorf("it begins with % x", code[:40*4])
}

// TestFramesOfCompilers measures functions that compilers made: most large ones take at least half of what was predicted.
func TestFramesOfCompilers(t *testing.T) {
	t.Parallel()
	skipUnread(t)
	for _, name := range []string{"image/image", "plain-c/plain-c"} {
		module, err := os.ReadFile("../../../../../examples/" + name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		large, near := 0, 0
		for i, f := range frames(t, module) {
			if f.real > 2*f.told {
				t.Errorf("%s: function %d was predicted to take %d bytes, and takes %d", name, i, f.told, f.real)
			}
			if f.real > 512 {
				large++
				if f.told <= 2*f.real {
					near++
				}
			}
		}
		if runtime.GOARCH == "amd64" && near*3 < large*2 { // others have more registers
			t.Errorf("%s: of %d large frames, %d were predicted to be at most twice as large as they are", name, large, near)
		}
	}
}

// skipUnread skips a test that reads the processor's code.
func skipUnread(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("this test can't read the code of this processor")
	}
}

// TestFrames compares the measured frames of hostile functions with those that the compiler gives them.
// Proves: Limits hold, one by one and in sum
func TestFrames(t *testing.T) {
	t.Parallel()
	skipUnread(t)
	sizes := [][2]int{{30, 300}, {300, 20}}
	if testkit.Emulated() { // under an emulator, the test takes ten times as long
		sizes = sizes[:1]
	}
	for _, s := range shapes() {
		for _, size := range sizes {
			module := s.make(size[0], size[1])
			if len(module) > 100_000 {
				continue
			}
			for i, f := range frames(t, module) {
				if f.told >= 0 && f.real > 2*f.told {
					t.Errorf("%s, %d, %d: function %d was predicted to take %d bytes, and takes %d", s.name, size[0], size[1], i, f.told, f.real)
				}
			}
		}
	}
}

// TestManyOperands makes calls that leave more operands than anybody wants to keep, so the function isn't measured.
// Proves: Compiling is bounded
func TestManyOperands(t *testing.T) {
	t.Parallel()
	m := &weigh.Module{Types: []weigh.Signature{{Results: 1000}}, Functions: []uint32{0}}
	for calls, want := range map[int]bool{60: true, 100_000: false} {
		body := slices.Concat([]byte{0}, bytes.Repeat([]byte{0x10, 0}, calls), []byte{0, 0x0b})
		if bytes, _, ok := weigh.NewRuler(m).Measure(wasmbin.FuncType{}, body, 0); ok != want {
			t.Errorf("%d calls: got %d bytes, measured: %t, want %t", calls, bytes, ok, want)
		}
	}
}
