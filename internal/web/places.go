package web

import (
	"sync"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// shareOfKnown and shareOfAddress are which part of the places one caller may have: with a token, or an address (64 bits of IPv6) without one.
	shareOfKnown, shareOfAddress = 2, 16
	// mostKept is how many places only administrators may have, up to a sixteenth of all.
	mostKept = 64
)

// Places are how many streams may be open that last until their clients go. Doors share them, so that all together leave connections for requests.
type Places struct {
	most int

	mu    sync.Mutex
	taken int
	by    map[rates.Caller]int
}

// NewPlaces returns this many places.
func NewPlaces(most int) *Places { return &Places{most: most, by: map[rates.Caller]int{}} }

// Take takes a place for who makes a request, which give gives back, or returns why there is none. It is to be called before the stream begins,
// of which the system keeps little then.
func (p *Places) Take(x *Exchange) (give func(), err error) {
	call := x.Call()
	caller, share, most := rates.CallerOf(call), shareOfKnown, p.most
	if call.Principal.Origin() == wasmtools.OriginOpen {
		share = shareOfAddress
	}
	if !call.Principal.Has(wasmtools.RoleAdminRead) {
		most -= min(mostKept, p.most/16)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= most:
		return nil, &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many streams are open; try again later"}
	case p.by[caller] >= (p.most+share-1)/share:
		return nil, &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "The caller has too many streams open; end some of them"}
	}
	p.taken++
	p.by[caller]++
	x.bound()
	return func() { p.give(caller) }, nil
}

// State returns how many places are taken, how many there are, and how many each caller has, by name or address. Callers of one name count together.
func (p *Places) State() (taken, most int, by map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	by = make(map[string]int64, len(p.by))
	for caller, n := range p.by {
		by[caller.String()] += int64(n)
	}
	return p.taken, p.most, by
}

func (p *Places) give(caller rates.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[caller]--; p.by[caller] == 0 {
		delete(p.by, caller)
	}
}
