// Package slow remembers the slowest calls of the last hour or so, with where each has spent its time.
package slow

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// Tools are spread over shelves, so that one that is slow hides few others. Each shelf has the slowest calls of this half hour and of the one
	// before.
	shelves, perShelf = 256, 8
	period            = 30 * time.Minute
	// maxText is how many bytes of a text are remembered.
	maxText = 200
)

// A Call is one that was slow.
type Call struct {
	Began time.Time
	Took  time.Duration
	// Tool is its path. Digest and Version are those that answered.
	Tool, Digest, Version string
	// Door is where it came in, Principal who called, Caller what tells that one from others of the name, if there can be any, Client from where, and
	// RequestID its request's.
	Door, Principal, Caller, Client, RequestID string
	// Code is why it failed, or empty.
	Code wasmtools.Code
	// Phases are its parts, and Uses what it used in its run of what it was granted.
	Phases []web.Phase
	Uses   []wasmtools.Use
}

// Calls are the slowest ones. They are an observer of requests.
type Calls struct {
	seed    maphash.Seed
	shelves [shelves]shelf
}

// A shelf has calls of some tools.
type shelf struct {
	// least is the time that a call has to exceed, and ends when the period ends, in nanoseconds: most calls look at these only.
	least, ends atomic.Int64

	mu          sync.Mutex
	now, before []Call
}

var _ web.Observer = (*Calls)(nil)

// New returns an observer that has seen nothing.
func New() *Calls { return &Calls{seed: maphash.MakeSeed()} }

// Answered remembers a request that has called a tool, if it is among the slowest.
func (c *Calls) Answered(a *web.Answer) {
	if a.Tool() == "" {
		return
	}
	took := a.Took()
	ended := a.Began().Add(took)
	s := &c.shelves[maphash.String(c.seed, a.Tool())%shelves]
	if int64(took) <= s.least.Load() && ended.UnixNano() < s.ends.Load() {
		return
	}
	s.add(a, took, ended)
}

// add remembers a call, unless others have taken longer.
func (s *shelf) add(a *web.Answer, took time.Duration, ended time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(ended)
	if len(s.now) < perShelf {
		s.now = append(s.now, callOf(a, took))
	} else if at := s.fastest(); s.now[at].Took < took {
		s.now[at] = callOf(a, took)
	}
	if len(s.now) == perShelf {
		s.least.Store(int64(s.now[s.fastest()].Took))
	}
}

// fastest returns which call has taken the least time. s.mu is held.
func (s *shelf) fastest() (at int) {
	for i := range s.now {
		if s.now[i].Took < s.now[at].Took {
			at = i
		}
	}
	return at
}

// turn begins another period if the last one has ended. s.mu is held.
func (s *shelf) turn(now time.Time) {
	ends := s.ends.Load()
	if now.UnixNano() < ends {
		return
	}
	if s.before = s.now; now.UnixNano() >= ends+int64(period) {
		s.before = nil
	}
	s.now = nil
	s.least.Store(-1)
	s.ends.Store(now.Add(period).UnixNano())
}

// callOf copies what is remembered of a request.
func callOf(a *web.Answer, took time.Duration) Call {
	t := a.Times()
	call := Call{
		Began: a.Began().UTC(), Took: took, Tool: text.Clip(a.Tool(), maxText), Door: a.Door(), RequestID: a.RequestID(),
		Phases: web.PhasesOf(&t), Uses: slices.Clone(a.Uses()),
	}
	if p := a.Principal(); p != nil {
		call.Principal, call.Caller = p.String(), string(personal.Apart(p))
	}
	if client := a.Client(); client.IsValid() {
		call.Client = client.String()
	}
	if g := a.Generation(); g != nil {
		if route, ok := g.Lookup(a.Tool()); ok {
			call.Digest, call.Version = route.Tool.Digest, text.Clip(route.Tool.Version, maxText)
		}
	}
	if failed := a.Error(); failed != nil {
		call.Code = failed.Code
	}
	return call
}

// List returns the calls that are remembered, the slowest first.
func (c *Calls) List() (all []Call) {
	for i := range c.shelves {
		s := &c.shelves[i]
		s.mu.Lock()
		s.turn(time.Now())
		all = append(append(all, s.now...), s.before...)
		s.mu.Unlock()
	}
	slices.SortStableFunc(all, func(a, b Call) int { return cmp.Compare(b.Took, a.Took) })
	return all
}
