package web

import (
	"sync"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// shareOfKnown and shareOfAddress bound the fraction of the places that one caller may have: a caller with a token, or one address (64 bits of
	// IPv6) without a token.
	shareOfKnown, shareOfAddress = 2, 16
	// mostKept is how many places are reserved for administrators, but at most a sixteenth of all.
	mostKept = 64
)

// Places bound the open streams that last until their clients leave. Doors share them, so that all streams together leave connections for requests.
type Places struct {
	most int

	mu    sync.Mutex
	taken int
	by    map[rates.Caller]int
}

// NewPlaces returns Places for n streams.
func NewPlaces(most int) *Places { return &Places{most: most, by: map[rates.Caller]int{}} }

// Take takes a place for the caller of a request, or returns an error if there is none. give gives the place back. Take must be called before the
// stream begins, and makes the system buffer little for it.
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

// State returns how many places are taken, how many there are, and how many each caller has, by name or address. Callers with the same name are
// counted together.
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
