// Package key is for the keys of a grant: it reads their values, and says what the log may show of them.
package key

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
)

// A Table holds the reader of each key, which checks a value and stores it. A value is a string, an int64, a float64, a bool, a time, a
// []any or a map[string]any. An error says what is wrong with it, and what is allowed. If a message begins with a value in quotes, logs
// leave the value out, since a secret can be anywhere by mistake.
type Table map[string]func(value any) error

// Boolean reads true or false.
func Boolean(to *bool) func(value any) error { return keys.Boolean(to) }

// Number reads a whole number.
func Number(to *int64, least, most int64) func(value any) error {
	return keys.Quantity(limittable.Count, least, most, func(n int64) { *to = n })
}

// Size reads a number of bytes, such as "64MiB" or 65536.
func Size(to *int64, least, most int64) func(value any) error {
	return keys.Quantity(limittable.Bytes, least, most, func(n int64) { *to = n })
}

// Duration reads a time such as "5s".
func Duration(to *time.Duration, least, most time.Duration) func(value any) error {
	return keys.Quantity(limittable.Time, int64(least), int64(most), func(n int64) { *to = time.Duration(n) })
}

// Word reads a string as check returns it; want says what the string must be.
func Word(to *string, want string, check func(string) (string, error)) func(value any) error {
	return keys.Word(to, want, check)
}

// Words reads a list of strings as check returns them.
func Words(to *[]string, check func(string) (string, error)) func(value any) error {
	return keys.Words(to, check)
}

// Object reads a table of any content as JSON.
func Object(to *json.RawMessage) func(value any) error { return keys.Object(to) }

// Name checks a name by which tools know something, such as a secret.
func Name(s string) (string, error) { return keys.Name(s) }

// Path checks the path of a file or folder, and returns it relative to directory.
func Path(directory string, needed bool) func(string) (string, error) {
	return keys.Path(directory, needed)
}

// A Shown is what the log of a reload may show of one key.
type Shown keys.Shown

// Listed shows which elements are added to a list, and which are removed.
func Listed(key string, list []string) Shown { return Shown(keys.Listed(key, list)) }

// Counted shows a number as format writes it; if format is nil, the number itself. Of several grants, the last one with a number other than 0 counts.
func Counted(key string, n int64, format func(int64) string) Shown {
	if format == nil {
		format = func(n int64) string { return strconv.FormatInt(n, 10) }
	}
	return Shown(keys.Counted(key, n, format))
}

// Silent shows that a value has changed, but not the value, since it may contain a secret. It is compared by reflect.DeepEqual.
func Silent(key string, value any) Shown { return Shown(keys.Silent(key, value)) }

// Line returns a line of TOML with a list, or nothing if the list is empty.
func Line(key string, list []string) string { return keys.Line(key, list) }

// Quote returns a string of TOML.
func Quote(s string) string { return keys.Quote(s) }
