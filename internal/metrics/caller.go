package metrics

import (
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/metrics/counters"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// mostCallers is how many callers are counted one by one. The others count together.
const mostCallers = 1000

// A caller is a principal by its name, and by what makes that its own.
type caller struct{ name, origin, realm string }

// called is how many calls a caller made, how many of them failed or were refused, and how many of these because there were too many.
type called struct{ calls, failed, limited atomic.Uint64 }

// callers are those of whom calls are counted.
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
