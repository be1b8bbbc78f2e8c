package command

import "testing"

func TestAmount(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{
		0: "-", 0.4: "-", 1: "1", 999.4: "999", 999.5: "1.0 k", 1234: "1.2 k", 99_600: "100 k", 999_600: "1.0 M", 5e9: "5.0 G", 1 << 64: "18447 P",
	} {
		if got := amount(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}
