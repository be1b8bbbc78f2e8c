// Package limittable reads the table in the tags of [limits.Limits]: keys, units, ranges and defaults.
package limittable

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A Limit is an entry of the table. Its numbers are nanoseconds, bytes or counts, as its unit says.
type Limit struct {
	// Key is the name of the limit in configurations.
	Key  string
	Unit Unit
	// Least and Most are the range that a configuration may set.
	Least, Most int64
	// Zero is what 0 means in a configuration, such as "unlimited", or "" if Least is above 0.
	Zero string
	// Means says in one sentence what is limited.
	Means string

	field         int
	otherwise     int64 // the default, unless it depends on the number of processors
	eachProcessor int64
}

// All returns the table, in the order of the fields. The caller owns it.
func All() []Limit { return slices.Clone(table()) }

// Default returns the limit that holds if nothing is configured.
func (e *Limit) Default() int64 {
	return e.otherwise + e.eachProcessor*int64(runtime.GOMAXPROCS(0))
}

// DefaultText returns the default as a configuration may contain it. It is 0 if the default depends on the machine.
func (e *Limit) DefaultText() string { return e.Unit.Format(e.otherwise) }

// Set sets the limit to n, as in a configuration. n must be in range. What 0 means is decided elsewhere, since it may depend on the
// machine and the tool.
func (e *Limit) Set(l *limits.Limits, n int64) {
	if n == 0 {
		n = -1
	}
	reflect.ValueOf(l).Elem().Field(e.field).SetInt(n)
}

// Text returns the limit in l as a configuration would contain it, or "" if l does not set it.
func (e *Limit) Text(l limits.Limits) string {
	n := reflect.ValueOf(l).Field(e.field).Int()
	if n == 0 {
		return ""
	}
	return e.Unit.Format(max(n, 0))
}

// meaning returns the limit that a field's value stands for.
func (e *Limit) meaning(n int64) int64 {
	switch {
	case n > 0:
		return n
	case n < 0 && e.Zero != "" && e.eachProcessor == 0:
		return 0
	}
	return e.Default()
}

// A Unit says in what a limit is counted, and how it is written.
type Unit string

const (
	Count Unit = ""      // 100
	Time  Unit = "time"  // "1m30s", in nanoseconds
	Bytes Unit = "bytes" // "64MiB"
)

// Parse reads a number in the unit.
func (u Unit) Parse(s string) (int64, error) {
	switch u {
	case Bytes:
		return text.ParseSize(s)
	case Time:
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf(`%q is not a time: use numbers with ms, s, m or h, such as "200ms", "5s" or "1m30s"`, text.Short(s))
		}
		return int64(d), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", text.Short(s))
	}
	return n, nil
}

// Format returns n as Parse reads it.
func (u Unit) Format(n int64) string {
	switch u {
	case Bytes:
		return text.FormatSize(n)
	case Time: // without trailing zero units
		s := strings.Replace(time.Duration(n).String(), "m0s", "m", 1)
		return strings.Replace(s, "h0m", "h", 1)
	}
	return strconv.FormatInt(n, 10)
}

// table is built from the fields' tags when it is first used. A wrong tag is a programming error.
var table = sync.OnceValue(func() []Limit {
	t := reflect.TypeFor[limits.Limits]()
	entries := make([]Limit, t.NumField())
	for i := range entries {
		tag := t.Field(i).Tag
		e := Limit{Key: tag.Get("key"), Unit: Unit(tag.Get("unit")), Zero: tag.Get("zero"), Means: tag.Get("means"), field: i}
		for name, to := range map[string]*int64{"default": &e.otherwise, "least": &e.Least, "most": &e.Most} {
			n, err := e.Unit.Parse(tag.Get(name))
			if err != nil {
				panic(fmt.Sprintf("limittable: the %s of %s: %v", name, t.Field(i).Name, err))
			}
			*to = n
		}
		// Set only if the default depends on the machine.
		if each := tag.Get("each"); each != "" {
			n, err := strconv.ParseInt(each, 10, 64)
			if err != nil {
				panic(fmt.Sprintf("limittable: each of %s: %v", t.Field(i).Name, err))
			}
			e.eachProcessor = n
		}
		entries[i] = e
	}
	return entries
})

// Default returns the limits that hold if nothing is configured.
func Default() limits.Limits { return Meant(limits.Limits{}) }

// Meant returns what l means: fields that are not set get their defaults, and a field is 0 if the limit is unlimited or none.
func Meant(l limits.Limits) limits.Limits {
	v := reflect.ValueOf(&l).Elem()
	for _, e := range table() {
		f := v.Field(e.field)
		f.SetInt(e.meaning(f.Int()))
	}
	return l
}

// Over returns base, except that fields which l sets have the value in l.
func Over(l, base limits.Limits) limits.Limits {
	from, to := reflect.ValueOf(&l).Elem(), reflect.ValueOf(&base).Elem()
	for _, e := range table() {
		n := from.Field(e.field).Int()
		if n == 0 {
			continue
		}
		if n < 0 && e.meaning(n) == e.Default() {
			n = 0
		}
		to.Field(e.field).SetInt(n)
	}
	return base
}
