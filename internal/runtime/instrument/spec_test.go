package instrument_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A script is a file of the specification's test suite, as contained in wazero's module.
type script struct {
	Commands []struct {
		Type     string
		Line     int
		Name, As string
		Filename string
		Text     string
		Action   action
	}
}

// registered returns the name under which the script registers the module of command i, or "".
func (s *script) registered(i int) string {
	for _, c := range s.Commands[i+1:] {
		switch {
		case c.Type == "register" && c.Name == s.Commands[i].Name:
			return c.As
		case c.Type == "register" && c.Name == "", c.Type == "module" && s.Commands[i].Name == "":
			return ""
		}
	}
	return ""
}

type action struct {
	Type, Module, Field string
	Args                []struct {
		Type  string
		Value any
	}
}

// A world runs a script: one world with rewritten modules, the other with the originals.
type world struct {
	*host
	rewritten bool
	last      api.Module
	named     map[string]api.Module
}

func newWorld(t *testing.T, dir string, rewritten bool) *world {
	t.Helper()
	w := &world{host: newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2)), rewritten: rewritten, named: map[string]api.Module{}}
	w.slice = 50 // small, so that there are refills everywhere
	module, err := os.ReadFile(filepath.Join(dir, "testdata/spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.InstantiateWithConfig(t.Context(), module, wazero.NewModuleConfig().WithName("spectest")); err != nil {
		t.Fatal(err)
	}
	return w
}

// module instantiates a module of the script. refused is the reason why the rewriter does not accept it.
func (w *world) module(ctx context.Context, name string, module []byte) (err, refused error) {
	w.last = nil
	if !w.rewritten {
		w.last, err = w.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
		return err, nil
	}
	r, refused := rewrite(module)
	if refused != nil {
		return nil, refused
	}
	w.last, err = w.instantiate(ctx, name, r, 1<<20)
	return err, nil
}

// invoke runs an action. It returns the results that can be compared, and the first line of the error.
func (w *world) invoke(ctx context.Context, m api.Module, a action) ([]uint64, string) {
	if a.Type == "get" {
		if g := m.ExportedGlobal(a.Field); g != nil {
			return []uint64{g.Get()}, ""
		}
		return nil, "no global"
	}
	f := m.ExportedFunction(a.Field)
	if f == nil {
		return nil, "no function"
	}
	if w.rewritten {
		m.ExportedGlobal(instrument.StackGlobal).(api.MutableGlobal).Set(1 << 20)
	}
	var args []uint64
	for _, arg := range a.Args {
		args = append(args, arguments(arg.Type, arg.Value)...)
	}
	results, err := f.Call(ctx, args...)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		if strings.Contains(first, string(errOverflow)) || strings.Contains(first, "stack overflow") {
			first = "stack overflow"
		}
		return nil, first
	}
	at := 0
	for _, t := range f.Definition().ResultTypes() {
		switch byte(t) {
		case byte(wasmbin.FuncRef): // an address
			results[at] = min(results[at], 1)
		case byte(wasmbin.V128):
			at++
		}
		at++
	}
	return results, ""
}

// arguments returns a value of a script as the numbers that a call takes.
func arguments(kind string, value any) []uint64 {
	number := func(text string, bits int) uint64 {
		if strings.HasPrefix(text, "nan") {
			return 0x7fc00000
		}
		if n, err := strconv.ParseInt(text, 10, bits); err == nil {
			return uint64(n)
		}
		n, _ := strconv.ParseUint(text, 10, bits)
		return n
	}
	if lanes, ok := value.([]any); ok { // v128
		var out [2]uint64
		bits := 128 / len(lanes)
		for i, lane := range lanes {
			text, _ := lane.(string)
			n := number(text, 64)
			if bits < 64 {
				n &= 1<<bits - 1
			}
			out[i*bits/64] |= n << (i * bits % 64)
		}
		return out[:]
	}
	text, _ := value.(string)
	switch kind {
	case "i32", "f32":
		return []uint64{uint64(uint32(number(text, 64)))}
	case "externref", "funcref":
		if text == "null" {
			return []uint64{0}
		}
		return []uint64{number(text, 64) + 1}
	}
	return []uint64{number(text, 64)}
}

// TestRewriteSpecification runs the specification's test suite in two worlds and compares them. Nothing that the suite calls invalid
// may become valid.
func TestRewriteSpecification(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs all scripts of the specification: not with -short")
	}
	if testkit.Race(t) {
		t.Skip("takes two minutes with -race, and nothing in it is concurrent")
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero")
	directory, err := list.Output()
	root := strings.TrimSpace(string(directory))
	if err != nil || root == "" {
		t.Skipf("wazero's source is not at hand: %v", err)
	}
	root = filepath.Join(root, "internal/integration_test/spectest")
	var modules, skipped, invoked, invalid atomic.Int64
	t.Run("scripts", func(t *testing.T) {
		for _, version := range []string{"v1", "v2"} {
			files, err := filepath.Glob(filepath.Join(root, version, "testdata", "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no scripts: %v", err)
			}
			for _, file := range files {
				t.Run(version+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
					if version == "v1" && testkit.Emulated() {
						t.Skip("v2 repeats nearly all of v1, so v1 is skipped under emulation")
					}
					t.Parallel()
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					var s script
					if err := json.Unmarshal(text, &s); err != nil {
						t.Fatal(err)
					}
					compareWorlds(t, root, filepath.Dir(file), &s, &modules, &skipped, &invoked, &invalid)
				})
			}
		}
	})
	t.Logf("%d modules, %d of them not taken; %d calls; %d invalid modules", modules.Load(), skipped.Load(), invoked.Load(), invalid.Load())
	want := int64(2)
	if testkit.Emulated() {
		want = 1
	}
	if modules.Load()-skipped.Load() < 1250*want || invoked.Load() < 20_000*want || invalid.Load() < 1500*want {
		t.Error("that is too little: has the suite changed?")
	}
}

func compareWorlds(t *testing.T, root, dir string, s *script, modules, skipped, invoked, invalid *atomic.Int64) {
	ctx := t.Context()
	plain, metered := newWorld(t, root, false), newWorld(t, root, true)
	for i, c := range s.Commands {
		switch c.Type {
		case "module", "assert_uninstantiable", "assert_unlinkable":
			modules.Add(1)
			module, err := os.ReadFile(filepath.Join(dir, c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			want, _ := plain.module(ctx, s.registered(i), module)
			got, refused := metered.module(ctx, s.registered(i), module)
			if refused != nil {
				skipped.Add(1)
				t.Logf("line %d: %v", c.Line, refused)
				plain.last, metered.last = nil, nil
			} else if (got == nil) != (want == nil) {
				t.Errorf("line %d: %s: got %v, want %v", c.Line, c.Filename, got, want)
			}
			if c.Name != "" {
				plain.named[c.Name], metered.named[c.Name] = plain.last, metered.last
			}
		case "action", "assert_return", "assert_trap", "assert_exhaustion":
			p, m := plain.last, metered.last
			if c.Action.Module != "" {
				p, m = plain.named[c.Action.Module], metered.named[c.Action.Module]
			}
			if p == nil || m == nil {
				continue
			}
			invoked.Add(1)
			want, wantErr := plain.invoke(ctx, p, c.Action)
			got, gotErr := metered.invoke(ctx, m, c.Action)
			if !slices.Equal(got, want) || gotErr != wantErr {
				t.Errorf("line %d: %s: got %v, %q, want %v, %q", c.Line, c.Action.Field, got, gotErr, want, wantErr)
			}
		case "assert_invalid", "assert_malformed":
			if filepath.Ext(c.Filename) != ".wasm" {
				continue
			}
			module, err := os.ReadFile(filepath.Join(dir, c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			invalid.Add(1)
			r, err := rewrite(module)
			if err == nil && compiles(metered, r.Module) == nil && compiles(plain, module) != nil {
				t.Errorf("line %d: %s (%s) is valid when rewritten", c.Line, c.Filename, c.Text)
			}
		}
	}
}
