package instrument_test

import (
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
)

// TestFloatsAreCharged checks the cost of instructions that take some 150 cycles for denormal numbers on Intel's processors. That is up to 80 ns: 5
// units at 16 ns. TestFloats measures their time, but can't find a mistake on other processors.
// Proves: A tool stops
func TestFloatsAreCharged(t *testing.T) {
	t.Parallel()
	const many, least = 2000, 5                                                            // fuel is charged for hundreds of instructions at a time
	const f32s, f64s, vectors = "\x20\x01\x20\x02", "\x20\x03\x20\x04", "\x20\x05\x20\x06" // gets two locals
	codes := map[string]string{
		"f32.sqrt": f32s[:2] + "\x91", "f64.sqrt": f64s[:2] + "\x9f", "f32.demote_f64": f64s[:2] + "\xb6", "f64.promote_f32": f32s[:2] + "\xbb",
		"f32x4.demote_f64x2_zero": vectors[:2] + "\xfd\x5e", "f64x2.promote_low_f32x4": vectors[:2] + "\xfd\x5f",
		"f32x4.sqrt": vectors[:2] + "\xfd\xe3\x01", "f64x2.sqrt": vectors[:2] + "\xfd\xef\x01",
	}
	for n, name := range []string{"add", "sub", "mul", "div"} {
		op := byte(n)
		codes["f32."+name] = f32s + string([]byte{0x92 + op})
		codes["f64."+name] = f64s + string([]byte{0xa0 + op})
		codes["f32x4."+name] = vectors + "\xfd" + string([]byte{0xe4 + op, 1})
		codes["f64x2."+name] = vectors + "\xfd" + string([]byte{0xf0 + op, 1})
	}
	for name, code := range codes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locals := "\x03\x02\x7d\x02\x7c\x02\x7b" // two each of f32, f64 and v128
			r, err := rewrite(program(1, []byte(locals+strings.Repeat(code+"\x1a", many)+"\x41\x00\x0b")))
			if err != nil {
				t.Fatal(err)
			}
			h := newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
			h.slice = 1 << 30
			m, err := h.instantiate(t.Context(), "", r, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.ExportedFunction("f0").Call(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			used := int(h.slice) - int(int32(uint32(m.ExportedGlobal(instrument.FuelGlobal).Get())))
			if used < least*many || used > 10*many {
				t.Errorf("it costs %.2f units, want %d at least, and not much more", float64(used)/many, least)
			}
		})
	}
}
