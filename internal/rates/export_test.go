package rates

import (
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// Allowed returns how many calls are allowed in a time.
func Allowed(r wasmtools.Rate, in time.Duration) int {
	m := measureOf(r)
	return int((m.window + in) / m.interval)
}
