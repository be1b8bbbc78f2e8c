package guest_test

import (
	"bytes"
	"testing"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
)

// TestVariant checks that variants differ in one constant of five bytes, and that a guest without it is refused.
func TestVariant(t *testing.T) {
	t.Parallel()
	// i32.const 0x5eed5eed, among others.
	small := []byte{0x0b, 0x41, 0xed, 0xbd, 0xb5, 0xf7, 0x05, 0x0b}
	seen := map[string]bool{}
	for _, n := range []int{0, 1, 127, 128, 999, 1<<24 - 1} {
		got, err := guest.Variant(small, n)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(small) || !bytes.HasPrefix(got, small[:2]) || got[len(got)-1] != 0x0b {
			t.Errorf("variant %d is % x, want % x but for the constant", n, got, small)
		}
		if seen[string(got)] {
			t.Errorf("variant %d is like another one", n)
		}
		seen[string(got)] = true
	}
	if _, err := guest.Variant([]byte{0x0b}, 1); err == nil {
		t.Error("got no error for a guest without the constant")
	}
}
