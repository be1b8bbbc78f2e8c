package web

import (
	"sync/atomic"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// Places are how many streams may be open at a time. Doors share them, so that all together leave connections for requests.
type Places struct {
	most  int64
	taken atomic.Int64
}

// NewPlaces returns this many places.
func NewPlaces(most int) *Places { return &Places{most: int64(most)} }

// Most returns how many places there are.
func (p *Places) Most() int { return int(p.most) }

// Take takes a place, which Give gives back, or returns why there is none.
func (p *Places) Take() error {
	if p.taken.Add(1) > p.most {
		p.Give()
		return &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many streams are open; try again later"}
	}
	return nil
}

// Give gives a place back.
func (p *Places) Give() { p.taken.Add(-1) }
