package rates

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// MaxCalls is the largest number of calls that a rate, a burst or a limit on running calls can have.
const MaxCalls = 1_000_000

// A Text is a rate in the form that people write. An empty Text limits nothing.
type Text struct {
	Rate       string `json:"rate,omitempty" description:"How many calls there may be on average, such as 10/s, 100/min or 1000/h." maxLength:"32"`
	Burst      int    `json:"burst,omitempty" description:"How many calls may come in a burst after a pause; by default the number in rate." minimum:"0" maximum:"1000000"`
	Concurrent int    `json:"concurrent,omitempty" description:"How many calls may run at the same time; by default any number." minimum:"0" maximum:"1000000"`
}

var units = []struct {
	name   string
	period time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}}

// ParseCalls reads a number of calls per period, such as "10/s". Each error begins with the text that was read, in quotes.
func ParseCalls(s string) (calls int, period time.Duration, err error) {
	number, unit, _ := strings.Cut(s, "/")
	n, err := strconv.ParseUint(number, 10, 32)
	if err == nil && number[0] != '0' {
		for _, u := range units {
			switch {
			case u.name != unit:
			case n > MaxCalls:
				return 0, 0, fmt.Errorf("%q is more than a rate can be: write at most %d/%s", text.Short(s), MaxCalls, unit)
			default:
				return int(n), u.period, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("%q is not a rate: write a whole number, a slash and a unit, such as 10/s, 100/min or 1000/h", text.Short(s))
}

// errBurst is returned for a burst without a rate.
var errBurst = errors.New("burst needs a rate, since it says how many calls may come at once: give both, such as 10/s and 20")

// Parse returns the rate of a text. A number that is 0 counts as missing.
func (t Text) Parse() (r wasmtools.Rate, err error) {
	if t.Rate != "" {
		if r.Calls, r.Period, err = ParseCalls(t.Rate); err != nil {
			return wasmtools.Rate{}, err
		}
	}
	for _, count := range []struct {
		name string
		n    int
		to   *int
	}{{"burst", t.Burst, &r.Burst}, {"concurrent", t.Concurrent, &r.Concurrent}} {
		if count.n == 0 {
			continue
		}
		if count.n < 1 || count.n > MaxCalls {
			return wasmtools.Rate{}, fmt.Errorf("%s is %d: write a whole number from 1 to %d", count.name, count.n, MaxCalls)
		}
		*count.to = count.n
	}
	return r, Check(r)
}

// Check returns what is wrong with a rate, or nil.
func Check(r wasmtools.Rate) error {
	switch {
	case r.Calls == 0 && r.Burst > 0:
		return errBurst
	case r.Calls < 0, r.Calls > MaxCalls, r.Calls > 0 && (r.Period <= 0 || r.Period > time.Hour), r.Burst < 0, r.Burst > MaxCalls, r.Concurrent < 0, r.Concurrent > MaxCalls:
		return errors.New("a rate is out of range")
	}
	return nil
}

// TextOf returns a rate as people write it.
func TextOf(r wasmtools.Rate) Text {
	t := Text{Burst: r.Burst, Concurrent: r.Concurrent}
	if r.Calls > 0 {
		t.Rate = fmt.Sprintf("%d/%s", r.Calls, r.Period)
		for _, u := range units {
			if u.period == r.Period {
				t.Rate = fmt.Sprintf("%d/%s", r.Calls, u.name)
			}
		}
	}
	return t
}

// Describe returns a rate in words, such as "10/s, 20 at once, 4 at the same time", or "" if it limits nothing.
func Describe(r wasmtools.Rate) string {
	var parts []string
	if r.Calls > 0 {
		parts = append(parts, TextOf(r).Rate, fmt.Sprintf("%d at once", burstOf(r)))
	}
	if r.Concurrent > 0 {
		parts = append(parts, fmt.Sprintf("%d at the same time", r.Concurrent))
	}
	return strings.Join(parts, ", ")
}

// burstOf returns how many calls of a rate may be made at once.
func burstOf(r wasmtools.Rate) int {
	if r.Burst > 0 {
		return r.Burst
	}
	return r.Calls
}
