// Package keys reads the values of configuration keys: a [Reader] checks one value and stores it. Package config reads files with it. Package key
// offers a part of it to other programs, for capabilities of their own.
package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/text"
)

// A Reader checks the value of one key and stores it. Its error says what is wrong with the value, and what is allowed. If an error begins with a
// value in quotes, logs leave the value out: by mistake, any value can be a secret.
type Reader func(value any) error

// Boolean reads true or false.
func Boolean(to *bool) Reader {
	return func(value any) error {
		b, ok := value.(bool)
		if !ok {
			return WrongType(value, "true or false")
		}
		*to = b
		return nil
	}
}

// Quantity reads a number in a unit: 100, "5s", "64MiB" or 65536.
func Quantity(unit limittable.Unit, least, most int64, set func(int64)) Reader {
	want := "a whole number"
	switch unit {
	case limittable.Time:
		want = `a time in quotes such as "200ms", "5s" or "1m30s"`
	case limittable.Bytes:
		want = `a size such as "64MiB", or a number of bytes`
	}
	return func(value any) error {
		n, isNumber := value.(int64)
		s, isText := value.(string)
		switch {
		case isNumber && unit != limittable.Time:
		case isText && unit != limittable.Count:
			var err error
			if n, err = unit.Parse(s); err != nil {
				return err
			}
		default:
			return WrongType(value, want)
		}
		if n < least || n > most {
			return fmt.Errorf("is out of range: %s to %s is allowed", unit.Format(least), unit.Format(most))
		}
		set(n)
		return nil
	}
}

// ZeroOr accepts the number 0, which leaves the choice to the server. It also accepts everything that read accepts.
func ZeroOr(to *int64, read Reader) Reader {
	return func(value any) error {
		if value == int64(0) {
			*to = 0
			return nil
		}
		return read(value)
	}
}

// Word reads a string and stores what check returns for it; want says what the value must be.
func Word(to *string, want string, check func(string) (string, error)) Reader {
	return func(value any) error {
		s, ok := value.(string)
		if !ok {
			return WrongType(value, want)
		}
		s, err := check(s)
		if err != nil {
			return err
		}
		*to = s
		return nil
	}
}

// Words reads a list of strings and stores what check returns for each.
func Words(to *[]string, check func(string) (string, error)) Reader {
	return List(`a list such as ["one", "two"]`, func(value any) error {
		var s string
		if err := Word(&s, "a string", check)(value); err != nil {
			return err
		}
		*to = append(*to, s)
		return nil
	})
}

// List reads a list, element by element.
func List(want string, read Reader) Reader {
	return func(value any) error {
		values, ok := value.([]any)
		if !ok {
			return WrongType(value, want)
		}
		for i, v := range values {
			if err := read(v); err != nil {
				return &ElementError{i, err}
			}
		}
		return nil
	}
}

// Path checks the path of a file or folder, and returns it relative to directory.
func Path(directory string, needed bool) func(string) (string, error) {
	return func(s string) (string, error) {
		switch {
		case s == "" && needed:
			return "", errors.New("must not be empty")
		case s == "":
			return "", nil
		case strings.ContainsRune(s, 0):
			return "", errors.New("has a null character: remove it")
		}
		return InDirectory(directory, s), nil
	}
}

// InDirectory returns a path as seen from a file in directory: relative paths begin there.
func InDirectory(directory, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(directory, path)
}

// WrongType returns an error that says of which type a value is, and what it must be. It does not show the value, which may be a secret.
func WrongType(value any, want string) error {
	got := "a date or time"
	switch value.(type) {
	case string:
		got = "a string"
	case int64:
		got = "a whole number"
	case float64:
		got = "a fractional number"
	case bool:
		got = "true or false"
	case []any:
		got = "a list"
	case map[string]any:
		got = "a table"
	}
	return fmt.Errorf("must be %s, not %s", want, got)
}

// Entries reads a table of names and values.
func Entries[T any](to *map[string]T, want string, check func(string) (string, error), read func(to *T) Reader) Reader {
	return func(value any) error {
		values, ok := value.(map[string]any)
		if !ok {
			return WrongType(value, want)
		}
		if len(values) > 0 {
			*to = make(map[string]T, len(values))
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			checked, err := check(name)
			var entry T
			if err == nil {
				err = read(&entry)(values[name])
			}
			if err != nil {
				return &MemberError{Name: name, Err: err}
			}
			(*to)[checked] = entry
		}
		return nil
	}
}

// Prefix reads a range of addresses.
func Prefix(to *[]netip.Prefix) Reader {
	return func(value any) error {
		var s string
		return Word(&s, `a range of addresses such as "10.0.0.0/8"`, func(s string) (string, error) {
			p, err := netip.ParsePrefix(s)
			if err != nil {
				if a, one := netip.ParseAddr(s); one == nil && a.Zone() == "" {
					return "", fmt.Errorf("%q is one address: write \"%s/%d\" for this one alone", s, a, a.BitLen())
				}
				return "", fmt.Errorf("%q is not a range of addresses: use one such as \"10.0.0.0/8\" or \"fd00::/8\"", text.Short(s))
			}
			if p != p.Masked() {
				return "", fmt.Errorf("%q has bits beyond its prefix: write %q", text.Short(s), p.Masked())
			}
			if p.Bits() == 0 {
				return "", fmt.Errorf("%q covers all addresses: name the ranges", text.Short(s))
			}
			if p.Addr().Is4In6() {
				return "", fmt.Errorf("%q is an IPv4 range in IPv6 form: write it as IPv4", text.Short(s))
			}
			*to = append(*to, p)
			return s, nil
		})(value)
	}
}

// maxObject is the size of the largest object in bytes of JSON.
const maxObject = 64 << 10

// Object reads a table of any content as JSON.
func Object(to *json.RawMessage) Reader {
	return func(value any) error {
		if _, ok := value.(map[string]any); !ok {
			return WrongType(value, `a table such as {units = "metric"}`)
		}
		if err := isJSON(value); err != nil {
			return err
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil { // it writes members in the order of their names
			return err
		}
		if b.Len() > maxObject {
			return fmt.Errorf("has %d bytes as JSON; at most %d are allowed", b.Len(), maxObject)
		}
		*to = bytes.TrimSpace(b.Bytes())
		return nil
	}
}

// isJSON returns an error if a value has a part that JSON can't represent.
func isJSON(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := isJSON(v[name]); err != nil {
				return &MemberError{Name: name, Err: err}
			}
		}
	case []any:
		for i := range v {
			if err := isJSON(v[i]); err != nil {
				return &ElementError{i, err}
			}
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("is not a number in JSON")
		}
	case string, int64, bool:
	default:
		return errors.New("must not be a date or time: write it as a string")
	}
	return nil
}

// Plain has the characters of names, and of keys that need no quotes.
const Plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// Pattern checks a pattern of tools.
func Pattern(s string) (string, error) { return s, pattern.Check(s) }

// Name checks a name that tools use for something, such as a secret.
func Name(s string) (string, error) {
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(Plain, r) }) {
		return "", fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 _ and -", text.Short(s))
	}
	return s, nil
}

// SecretName checks the name of a secret, as secret.CheckName does.
func SecretName(s string) (string, error) {
	if _, err := Name(strings.ReplaceAll(s, ".", "_")); err != nil || s[0] == '.' {
		return "", fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 . _ and -, without a dot at the beginning", text.Short(s))
	}
	return s, nil
}

// A MemberError is what is wrong with one member of a table.
type MemberError struct {
	Name string
	Err  error
	// Known says whether toolsrv defines the name, so that messages may show it.
	Known bool
}

// Error says what is wrong.
func (e *MemberError) Error() string { return e.Err.Error() }

// An ElementError is what is wrong with one element of a list.
type ElementError struct {
	Index int
	Err   error
}

// Error says what is wrong.
func (e *ElementError) Error() string { return e.Err.Error() }

// Pathless returns an error without the path that could not be opened: it may be a secret in the wrong place.
func Pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("its path can't be opened (a relative path begins at the configuration's folder): %w", e.Err)
	}
	return err
}

// A Shown is what the log of a reload may show about one key.
type Shown struct {
	key    string
	list   []string
	number int64
	format func(int64) string // nil: the key has no number
	hidden any
	hides  bool
}

// Listed shows which elements were added to a list or removed from it.
func Listed(key string, list []string) Shown { return Shown{key: key, list: list} }

// Counted shows a number in the form that format returns. Of several grants, the last one with a number other than 0 is shown.
func Counted(key string, n int64, format func(int64) string) Shown {
	return Shown{key: key, number: n, format: format}
}

// Silent shows only that a value has changed, because it may hold a secret. Values are compared with reflect.DeepEqual.
func Silent(key string, value any) Shown { return Shown{key: key, hidden: value, hides: true} }

// Key returns the key.
func (s Shown) Key() string { return s.key }

// List returns the elements of a list.
func (s Shown) List() []string { return s.list }

// Number returns the number and its format, which is nil if the key has no number.
func (s Shown) Number() (n int64, format func(int64) string) { return s.number, s.format }

// Hidden returns the value that must not be shown, and whether the key has one.
func (s Shown) Hidden() (value any, hides bool) { return s.hidden, s.hides }

// Line returns a line of TOML that sets a key to a list, or "" if the list is empty.
func Line(key string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = Quote(s)
	}
	return key + " = [" + strings.Join(quoted, ", ") + "]\n"
}

// Quote returns a TOML string. TOML has the same escapes as JSON.
func Quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string never fails
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\u007f", `\u007f`)
}
