package metrics

import (
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/metrics/counters"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// mostCallers is how many callers have counters of their own. All others share one.
const mostCallers = 1000

// A caller identifies a principal by its name, and by what makes that name unique.
type caller struct{ name, origin, realm string }

// called counts a caller's calls, those that failed or were refused, and those that were refused because of the rate limit.
type called struct{ calls, failed, limited atomic.Uint64 }

// callers has the counters of callers.
type callers = counters.Map[caller, called]

func addTo(c *callers, p *wasmtools.Principal, failed *wasmtools.Error) {
	of := c.Of(caller{p.String(), p.Origin(), p.Realm()})
	of.calls.Add(1)
	if failed != nil {
		of.failed.Add(1)
		if failed.Code == wasmtools.CodeRateLimited {
			of.limited.Add(1)
		}
	}
}
