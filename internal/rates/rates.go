// Package rates limits how many calls each caller makes: how many per period, in a burst, and at the same time. A caller is a principal, or an
// address if callers need no credentials.
//
// Only calls of clients are counted, once each: the calls that tools make inside them belong to them. A call is counted before its arguments are
// read, so that a client can't avoid it by sending them slowly.
package rates

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// Settings are the rates of callers that have no rate of their own.
type Settings struct {
	// Default is the rate of each principal. A caller's own rate overrides this, part by part.
	Default wasmtools.Rate
	// Anonymous is the rate of each address while callers need no credentials. All addresses of an IPv6 network of 64 bits count as one, since
	// clients get at least such a network.
	Anonymous wasmtools.Rate
}

// A Configured is a configuration in a generation that has Settings.
type Configured interface{ CallRates() *Settings }

// A Limiter counts the calls of callers. It is safe for concurrent use. A new configuration doesn't reset its counts.
type Limiter struct {
	seed                  maphash.Seed
	began                 time.Time
	principals, addresses table
	refused               atomic.Int64
}

// New returns a Limiter that has counted nothing. Its memory grows with the number of callers, up to 10 MiB, or 13 MiB if it is shared.
func New() *Limiter { return &Limiter{seed: maphash.MakeSeed(), began: time.Now()} }

// now returns the time since the Limiter was made. It never goes back, even if the clock is set.
func (l *Limiter) now() time.Duration { return time.Since(l.began) }

// none are the Settings without rates.
var none = &Settings{}

// settingsOf returns the settings in force for a call.
func settingsOf(call *wasmtools.Call) *Settings {
	if c, ok := call.Generation.Configuration().(Configured); ok {
		return c.CallRates()
	}
	return none
}

// A Ticket is a call that has begun. The zero Ticket belongs to a call without limits.
type Ticket struct {
	limiter   *Limiter
	principal *wasmtools.Principal
	settings  *Settings
	address   uint64
	held      uint16 // a bit for each entry that counts the call as running: the principal's own, then each that it is within
}

// deepest is how many principals a call counts for at most: Ticket.held has a bit for each. A token can be at most four levels deep.
const deepest = 16

// Begin counts a call from now until End of its Ticket is called. The error is a *wasmtools.Error with CodeRateLimited, whose cause is a
// *Refusal: the call may not be made now, and is not counted. If there is no error, Begin allocates nothing.
func (l *Limiter) Begin(call *wasmtools.Call) (t Ticket, err error) {
	p, settings := call.Principal, settingsOf(call)
	if p.Origin() == wasmtools.OriginOpen {
		return l.beginAnonymous(call, settings)
	}
	t = Ticket{limiter: l, principal: p, settings: settings}
	counts, n, now := false, 0, time.Duration(0)
	for q := p; q != nil && n < deepest; q, n = q.Within(), n+1 { // the narrowest first: if that one calls too often, the wider ones are not charged
		r := settings.of(q)
		if r.IsZero() {
			continue
		}
		if !counts {
			counts, now = true, l.now()
		}
		held, ok, after := l.principals.take(l.number(q), q, measureOf(r), now)
		if !ok {
			t.end(q, true)
			return Ticket{}, l.refuse(q.String(), r, after)
		}
		if held {
			t.held |= 1 << n
		}
	}
	if !counts {
		return Ticket{}, nil
	}
	return t, nil
}

func (l *Limiter) beginAnonymous(call *wasmtools.Call, settings *Settings) (t Ticket, err error) {
	if settings.Anonymous.IsZero() {
		return t, nil
	}
	network := networkOf(call)
	t = Ticket{limiter: l, settings: settings, address: maphash.Comparable(l.seed, network) | 1}
	held, ok, after := l.addresses.take(t.address, nil, measureOf(settings.Anonymous), l.now())
	if !ok {
		return Ticket{}, l.refuse(nameOf(network), settings.Anonymous, after)
	}
	if held {
		t.held = 1
	}
	return t, nil
}

// End ends the call. It can be called twice.
func (t *Ticket) End() {
	if t.held == 0 {
		return
	}
	if t.address != 0 {
		t.limiter.addresses.give(t.address, measure{}, true, false)
		t.held = 0
		return
	}
	t.end(nil, false)
	t.held = 0
}

// end ends what was counted for the principal and those that it is within, as far as upTo, which is left out. If back is true, the call was not
// made, and is no longer counted.
func (t *Ticket) end(upTo *wasmtools.Principal, back bool) {
	n := 0
	for q := t.principal; q != upTo && n < deepest; q, n = q.Within(), n+1 {
		r := t.settings.of(q)
		if held := t.held&(1<<n) != 0; !r.IsZero() && (held || back) {
			t.limiter.principals.give(t.limiter.number(q), measureOf(r), held, back)
		}
	}
}

// of returns a principal's own rate, or zero.
func (s *Settings) of(p *wasmtools.Principal) wasmtools.Rate {
	if p.Within() != nil || p.Origin() == wasmtools.OriginProcess {
		return p.Rate()
	}
	return over(p.Rate(), s.Default)
}

// over returns r with its missing parts taken from the parameter otherwise: a rate that limits one thing must not free its caller of all other
// limits.
func over(r, otherwise wasmtools.Rate) wasmtools.Rate {
	switch {
	case r.Calls <= 0:
		r.Calls, r.Period, r.Burst = otherwise.Calls, otherwise.Period, otherwise.Burst
	case r.Burst <= 0:
		r.Burst = min(otherwise.Burst, r.Calls) // nobody who writes 1/h wants a burst of 1000 with it
	}
	if r.Concurrent <= 0 {
		r.Concurrent = otherwise.Concurrent
	}
	return r
}

// number returns the number of a principal in the table, which is not 0. It depends only on the name, the origin and the realm.
func (l *Limiter) number(p *wasmtools.Principal) uint64 {
	return l.numberOf(p.String(), p.Origin(), p.Realm())
}

func (l *Limiter) numberOf(name, origin, realm string) uint64 {
	n := maphash.String(l.seed, name) + 31*maphash.String(l.seed, origin)
	if realm != "" {
		n += 37 * maphash.String(l.seed, realm)
	}
	return n | 1
}

// A State is how much of a rate is left.
type State struct {
	Of      *wasmtools.Principal
	Rate    wasmtools.Rate
	Left    int // how many calls may be made at once now
	Running int // how many calls run; counted only if they are limited
}

// States returns the rates that limit a principal: its own rate, and those that it shares.
func (l *Limiter) States(p *wasmtools.Principal, s *Settings) (all []State) {
	for q := p; q != nil && q.Origin() != wasmtools.OriginOpen; q = q.Within() {
		if r := s.of(q); !r.IsZero() {
			left, running := l.principals.left(l.number(q), measureOf(r), l.now())
			all = append(all, State{q, r, left, running})
		}
	}
	return all
}

// Known returns how many principals and addresses have used up some of their calls.
func (l *Limiter) Known() (principals, addresses int) {
	return l.principals.known(l.now()), l.addresses.known(l.now())
}

// A Caller is the party that a call counts for when callers take turns: the outermost principal whose rate limits the call, or the network of the
// client while callers need no credentials. Callers can be compared.
type Caller struct {
	origin, realm, name string
	network             netip.Prefix
}

// CallerOf returns who makes a call. It allocates nothing.
func CallerOf(call *wasmtools.Call) Caller {
	p := call.Principal
	if p.Origin() == wasmtools.OriginOpen {
		return Caller{network: networkOf(call)}
	}
	for q := p.Within(); q != nil; q = q.Within() {
		p = q
	}
	return Caller{origin: p.Origin(), realm: p.Realm(), name: p.String()}
}

// String returns the caller's name for the log.
func (c Caller) String() string {
	if c.origin == "" {
		return nameOf(c.network)
	}
	return c.name
}

// Party returns the Caller of a call as a unique string.
func Party(call *wasmtools.Call) string {
	c := CallerOf(call)
	if c.origin == "" {
		return c.network.String()
	}
	return c.origin + "\x00" + c.realm + "\x00" + c.name
}

// networkOf returns the network of the client of a call: one IPv4 address, or 64 bits of an IPv6 address.
func networkOf(call *wasmtools.Call) netip.Prefix {
	if call.Client == nil {
		return netip.Prefix{}
	}
	a := call.Client.Address()
	bits := 64
	if a.Is4() {
		bits = 32
	}
	network, _ := a.Prefix(bits) // only the zero Addr has none
	return network
}

// nameOf returns the name of a network for the log.
func nameOf(network netip.Prefix) string {
	switch {
	case !network.IsValid():
		return "clients without an address"
	case network.IsSingleIP():
		return network.Addr().String()
	}
	return network.String()
}

// A Refusal says why a call may not be made now.
type Refusal struct {
	// Of says whose rate was used up: it is a name, or an address.
	Of   string
	Rate wasmtools.Rate
	// After is how long to wait before the next call. Zero means that the caller must wait until one of its running calls has ended.
	After time.Duration
}

// Refused returns how many calls were refused.
func (l *Limiter) Refused() int64 { return l.refused.Load() }

func (l *Limiter) refuse(of string, r wasmtools.Rate, after time.Duration) error {
	l.refused.Add(1)
	refusal := &Refusal{of, r, after}
	e := &wasmtools.Error{Code: wasmtools.CodeRateLimited, Err: refusal}
	if after > 0 {
		e.Message = fmt.Sprintf("The caller's rate of %s is used up; try again in %s", TextOf(r).Rate, inWords(refusal.Seconds()))
	} else {
		e.Message = fmt.Sprintf("The caller has %d calls running, which is its limit; try again when one has ended", r.Concurrent)
	}
	return e
}

// Error says whose rate it is, for the log.
func (r *Refusal) Error() string {
	if r.After > 0 {
		return fmt.Sprintf("the rate of %s is used up: %s", r.Of, Describe(r.Rate))
	}
	return fmt.Sprintf("%s has reached its limit of running calls: %s", r.Of, Describe(r.Rate))
}

// Seconds returns after how many seconds to try again, at least 1.
func (r *Refusal) Seconds() int64 { return max(1, int64((r.After+time.Second-1)/time.Second)) }

func inWords(seconds int64) string {
	if seconds == 1 {
		return "1 second"
	}
	return strconv.FormatInt(seconds, 10) + " seconds"
}

// Describe sets the header fields that tell a client about the refusal: Retry-After, and RateLimit and RateLimit-Policy as in the IETF's draft
// "RateLimit header fields for HTTP" (draft-ietf-httpapi-ratelimit-headers-10).
func (r *Refusal) Describe(h http.Header) {
	var policies []string
	if r.Rate.Calls > 0 {
		m := measureOf(r.Rate)
		window := max(1, int64((m.window+time.Second-1)/time.Second))
		policies = append(policies, fmt.Sprintf(`"rate";q=%d;w=%d`, burstOf(r.Rate), window))
	}
	if r.Rate.Concurrent > 0 {
		policies = append(policies, fmt.Sprintf(`"concurrent";q=%d;qu="concurrent-requests"`, r.Rate.Concurrent))
	}
	limit := `"concurrent";r=0`
	if r.After > 0 {
		limit = fmt.Sprintf(`"rate";r=0;t=%d`, r.Seconds())
	}
	h.Set("Retry-After", strconv.FormatInt(r.Seconds(), 10))
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
	h.Set("RateLimit", limit)
}
