package config

import (
	"errors"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// rateKeys adds the readers of a rate to those of a table.
func rateKeys(t key.Table, r *wasmtools.Rate) key.Table {
	// a whole number from 1 to 1000000, a slash, and `s`, `min` or `h` | how many calls there may be on average
	t["rate"] = func(value any) error {
		text, ok := value.(string)
		if !ok {
			return keys.WrongType(value, `a rate in quotes such as "10/s", "100/min" or "1000/h"`)
		}
		calls, period, err := rates.ParseCalls(text)
		r.Calls, r.Period = calls, period
		return err
	}
	// how many calls may be made at once after a pause; if it is missing, the number in `rate`
	t["burst"] = keys.Quantity(limittable.Count, 1, rates.MaxCalls, func(n int64) { r.Burst = int(n) })
	// how many calls may run at the same time; any number if it is missing
	t["concurrent"] = keys.Quantity(limittable.Count, 1, rates.MaxCalls, func(n int64) { r.Concurrent = int(n) })
	return t
}

// checkRate checks which keys of a rate go together.
func checkRate(d *document, place string, r *wasmtools.Rate) {
	if _, there := d.offsets[join(place, "rate")]; r.Burst > 0 && !there {
		d.fail(join(place, "burst"), errors.New(`has no effect without rate: add one, as in rate = "10/s"`))
	}
}
