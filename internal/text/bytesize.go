package text

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the units of sizes, those with longer names first.
var units = [...]struct {
	name  string
	bytes int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1_000_000_000}, {"MB", 1_000_000}, {"kB", 1_000},
	{"B", 1},
}

// ParseSize returns the number of bytes of a size such as "64MiB" or "65536". A size that does not fit into an int64 becomes the largest int64.
func ParseSize(s string) (int64, error) {
	digits, factor := s, int64(1)
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			digits, factor = number, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && int64(n) > math.MaxInt64/factor:
		return math.MaxInt64, nil
	case err != nil:
		return 0, fmt.Errorf(`%q is not a size: use a whole number with KiB, MiB, GiB, kB, MB, GB or B, such as "64MiB"`, Short(s))
	}
	return int64(n) * factor, nil
}

// FormatSize returns n in the form that ParseSize reads, in the largest power of 1024 that divides it.
func FormatSize(n int64) string {
	n, unit := inUnit(n)
	return strconv.FormatInt(n, 10) + unit
}

// Size is FormatSize in the form for a sentence: "64 MiB" or "1500 bytes".
func Size(n int64) string {
	count, unit := inUnit(n)
	switch {
	case unit != "B":
		return strconv.FormatInt(count, 10) + " " + unit
	case count == 1:
		return "1 byte"
	}
	return strconv.FormatInt(count, 10) + " bytes"
}

// inUnit returns n in the largest power of 1024 that divides it.
func inUnit(n int64) (count int64, unit string) {
	for _, u := range units[:3] {
		if n != 0 && n%u.bytes == 0 {
			return n / u.bytes, u.name
		}
	}
	return n, "B"
}

// RoundSize returns n rounded for people: "1.5 MiB".
func RoundSize[N int | int64 | uint64](n N) string {
	for _, u := range units[:3] {
		if n > 0 && uint64(n) >= uint64(u.bytes) {
			return strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', 1, 64) + " " + u.name
		}
	}
	return Size(int64(n))
}
