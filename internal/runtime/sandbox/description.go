package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/toolsrv/toolsrv/runtime/limits"
)

// Modules' descriptions of themselves are stored with the cache, so that the modules need not run for that at each start of a server.

// Described returns what Describe returned for an equal module, in this process or in an earlier one with the same Config.CacheDir, or nil if
// that is not known.
func (p *Program) Described() []byte {
	m := p.module
	if m.sum != m.plain || !m.shape.describe {
		return nil
	}
	return m.engine.foundry.Described(m.sum)
}

// keepDescription stores a module's description, for Described.
func (p *Program) keepDescription(text []byte) {
	if m := p.module; m.sum == m.plain {
		m.engine.foundry.Describe(m.sum, text)
	}
}

// describeLimits returns the limits of Describe. The largest output is the largest manifest. Fuel bounds the guest's work: whether a module can be
// described must not depend on what else the machine does meanwhile. The time limit is for a guest that waits.
func describeLimits(fuel int64) limits.Limits {
	if fuel <= 0 {
		fuel = 10_000_000_000
	}
	return inForce(limits.Limits{Timeout: time.Minute, Fuel: fuel, Output: 1 << 20})
}

// Describe runs toolsrv_describe with Config.DescribeFuel, for at most a minute, and otherwise with the default limits. It returns the module's own
// manifest, at most 1 MiB of JSON. If the module must be compiled first, that does not count towards the limits. The error is an *Error.
func (p *Program) Describe(ctx context.Context) ([]byte, error) {
	if !p.module.shape.describe {
		return nil, &Error{Outcome: Internal, Message: fmt.Sprintf("The module has no export %s.", p.module.shape.convention.Describe.Name)}
	}
	if err := p.Compile(ctx); err != nil {
		return nil, err
	}
	l := p.module.engine.describes
	p.module.allow(l.Memory)
	r := run{ctx: ctx, begun: time.Now(), limits: &l, describe: true}
	r.deadline = r.begun.Add(l.Timeout)
	output, err := p.module.serve(&r)
	if err == nil {
		p.keepDescription(output)
	}
	return output, asError(err)
}
