package wasmtools

import "time"

// A Rate limits how many calls a caller makes. The zero Rate limits nothing.
type Rate struct {
	// Calls is how many are allowed in each Period, on average. Zero means any number.
	Calls  int
	Period time.Duration
	// Burst is how many may be made at once after a pause. Zero means Calls.
	Burst int
	// Concurrent is how many may run at the same time. Zero means any number.
	Concurrent int
}

// IsZero reports whether the rate limits nothing.
func (r Rate) IsZero() bool { return r.Calls <= 0 && r.Concurrent <= 0 }

// WithRate returns the principal with a rate. The calls also count against the rate of within, such as the principal whose token has made
// this principal's token; within may be nil. So a principal can't get more calls than it may make by giving itself several names. A
// verifier that sets rates must return principals of the same name, origin and realm for the same caller, since calls are counted by these.
func (p *Principal) WithRate(r Rate, within *Principal) *Principal {
	next := p.clone()
	next.rate, next.within = r, within
	return next
}

// Rate returns the limit on the principal's calls. Where it is zero, the server's configuration may bound them.
func (p *Principal) Rate() Rate {
	if p == nil {
		return Rate{}
	}
	return p.rate
}

// Within returns the principal against whose rate calls also count, or nil.
func (p *Principal) Within() *Principal {
	if p == nil {
		return nil
	}
	return p.within
}
