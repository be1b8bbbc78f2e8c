package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// The phases of a module's life, with one benchmark each.

func BenchmarkLoad(b *testing.B) {
	for _, guest := range benchGuests(b) {
		b.Run(guest.name, func(b *testing.B) {
			e := sandboxtest.Engine(b, sandbox.Config{})
			b.SetBytes(int64(len(guest.module)))
			b.ReportAllocs()
			for b.Loop() {
				p, err := e.Load(guest.module, abi1.Modules()...)
				if err != nil {
					b.Fatal(err)
				}
				p.Close()
			}
		})
	}
}

// BenchmarkCompile compiles without a cache (scratch), into an empty one (miss), and from a filled one (hit).
func BenchmarkCompile(b *testing.B) {
	for _, mode := range []string{"scratch", "miss", "hit"} {
		for _, guest := range benchGuests(b) {
			b.Run(mode+"/"+guest.name, func(b *testing.B) {
				c := sandbox.Config{}
				if mode != "scratch" {
					c.CacheDir = b.TempDir()
				}
				e := sandboxtest.Engine(b, c)
				compile := func() {
					p, err := e.Load(guest.module, abi1.Modules()...)
					if err != nil {
						b.Fatal(err)
					}
					if err := p.Compile(b.Context()); err != nil {
						b.Fatal(err)
					}
					p.Close()
				}
				if mode == "hit" {
					compile()
				}
				b.ReportAllocs()
				for b.Loop() {
					compile()
					if mode == "miss" {
						all, _ := names(b, c.CacheDir)
						for _, name := range all {
							if err := os.Remove(filepath.Join(c.CacheDir, name)); err != nil {
								b.Fatal(err)
							}
						}
					}
				}
			})
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for _, guest := range benchGuests(b) {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"0B", 0}, {"1KB", 1 << 10}, {"64KB", 64 << 10}} {
			b.Run(guest.name+"/"+size.name, func(b *testing.B) {
				program := sandboxtest.Load(b, sandboxtest.Engine(b, sandbox.Config{}), guest.module)
				if err := program.Compile(b.Context()); err != nil { // a call would wait for this only as long as its limit allows
					b.Fatal(err)
				}
				tool := program.Tool("bench", 0, limits.Limits{})
				input := []byte(`{"a":"` + strings.Repeat("x", size.bytes) + `"}`)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tool.Call(b.Context(), sandbox.CallSpec{Input: input}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCallParallel(b *testing.B) {
	tool := sandboxtest.Load(b, sandboxtest.Engine(b, sandbox.Config{}), testkit.Fixture(b, "wat/good/stages")).Tool("bench", 0, limits.Limits{Queue: 1 << 20})
	if _, err := tool.Call(b.Context(), sandbox.CallSpec{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := tool.Call(b.Context(), sandbox.CallSpec{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkHostFunction calls log 150 times; none of these lines is written.
func BenchmarkHostFunction(b *testing.B) {
	tool := sandboxtest.Load(b, sandboxtest.Engine(b, sandbox.Config{}), testkit.Fixture(b, "wat/hostile/log")).Tool("bench", 4, limits.Limits{LogLines: -1})
	if _, err := tool.Call(b.Context(), sandbox.CallSpec{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.Call(b.Context(), sandbox.CallSpec{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHard has calls after which more than a reset is needed. Either the memory has grown, and is made smaller again; or it has grown to its
// maximum, and the next instance is made from the image; or the module can't be reset, and the next instance is started anew.
func BenchmarkHard(b *testing.B) {
	for _, guest := range []struct {
		name, fixture string
		index         int32
	}{{"grown", "good/leaky", 7}, {"grown to the most", "good/leaky", 14}, {"fresh", "good/fresh", 0}} {
		b.Run(guest.name, func(b *testing.B) {
			tool := sandboxtest.Load(b, sandboxtest.Engine(b, sandbox.Config{}), testkit.Fixture(b, "wat/"+guest.fixture)).Tool("bench", guest.index, limits.Limits{})
			if _, err := tool.Call(b.Context(), sandbox.CallSpec{}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tool.Call(b.Context(), sandbox.CallSpec{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTrap(b *testing.B) {
	tool := sandboxtest.Load(b, sandboxtest.Engine(b, sandbox.Config{}), testkit.Fixture(b, "wat/hostile/traps")).Tool("bench", 0, limits.Limits{})
	tool.Call(b.Context(), sandbox.CallSpec{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.Call(b.Context(), sandbox.CallSpec{}); err == nil {
			b.Fatal("a trap gives no error")
		}
	}
}

type benchGuest struct {
	name   string
	module []byte
}

func benchGuests(b *testing.B) []benchGuest {
	return []benchGuest{{"small", testkit.Fixture(b, "wat/good/small")}, {"go", goReactor(b)}}
}
