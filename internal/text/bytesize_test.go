package text_test

import (
	"math"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/text"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"0": 0, "65536": 65536, "7B": 7, "1kB": 1000, "64KiB": 65536, "64MiB": 64 << 20, "2GiB": 2 << 30, "3MB": 3_000_000, "1GB": 1_000_000_000,
		"9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64, "9999999999GiB": math.MaxInt64, strings.Repeat("9", 1000): math.MaxInt64,
	} {
		if got, err := text.ParseSize(in); got != want || err != nil {
			t.Errorf("ParseSize(%.40q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "MiB", "B", "-1", "-1MiB", "+1", "1.5MiB", "1 MiB", " 1", "1mib", "1KB", "1M", "0x10", "1_000", "1e3", "١MiB", "1\x00", "\xff", "1MiBMiB", strings.Repeat("x", 1000),
	} {
		got, err := text.ParseSize(in)
		if err == nil {
			t.Errorf("ParseSize(%.40q) = %d, want an error", in, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("ParseSize(%.40q): the error has %d bytes", in, len(err.Error()))
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n                     int64
		format, size, rounded string
	}{
		{0, "0B", "0 bytes", "0 bytes"},
		{1, "1B", "1 byte", "1 byte"},
		{1000, "1000B", "1000 bytes", "1000 bytes"},
		{1 << 10, "1KiB", "1 KiB", "1.0 KiB"},
		{1<<10 + 1, "1025B", "1025 bytes", "1.0 KiB"},
		{3 << 9, "1536B", "1536 bytes", "1.5 KiB"},
		{192 << 10, "192KiB", "192 KiB", "192.0 KiB"},
		{64 << 20, "64MiB", "64 MiB", "64.0 MiB"},
		{4 << 30, "4GiB", "4 GiB", "4.0 GiB"},
		{math.MaxInt64, "9223372036854775807B", "9223372036854775807 bytes", "8589934592.0 GiB"},
	} {
		if got := text.FormatSize(test.n); got != test.format {
			t.Errorf("FormatSize(%d) = %q, want %q", test.n, got, test.format)
		}
		if got := text.Size(test.n); got != test.size {
			t.Errorf("Size(%d) = %q, want %q", test.n, got, test.size)
		}
		if got := text.RoundSize(test.n); got != test.rounded {
			t.Errorf("RoundSize(%d) = %q, want %q", test.n, got, test.rounded)
		}
	}
}

// FuzzSize checks that a written size is read as the same size.
func FuzzSize(f *testing.F) {
	for _, n := range []int64{0, 1, 1023, 1 << 10, 1 << 20, 5 << 30, math.MaxInt64, -1, math.MinInt64} {
		f.Add(n, "64MiB")
	}
	f.Fuzz(func(t *testing.T, n int64, s string) {
		if n >= 0 {
			if got, err := text.ParseSize(text.FormatSize(n)); got != n || err != nil {
				t.Errorf("%s: got %d, %v, want %d", text.FormatSize(n), got, err, n)
			}
		}
		text.Size(n)
		text.RoundSize(n)
		if got, err := text.ParseSize(s); err == nil && got < 0 {
			t.Errorf("ParseSize(%q) = %d", s, got)
		}
	})
}
