package text

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are those that a size can be given in, the longer names first.
var units = [...]struct {
	name  string
	bytes int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1_000_000_000}, {"MB", 1_000_000}, {"kB", 1_000},
	{"B", 1},
}

// ParseSize returns the bytes of a size such as "64MiB" or "65536". One that an int64 can't hold counts as the largest that
// it can.
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

// FormatSize returns n as ParseSize reads it, in the largest power of 1024 that divides it.
func FormatSize(n int64) string {
	for _, u := range units[:3] {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
