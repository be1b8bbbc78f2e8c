// Package slow remembers the slowest calls of the last hour or so, and where each has spent its time.
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
	// Tools are spread over shelves, so that a slow tool hides few others. Each shelf has the slowest calls of this half hour and of the one before.
	shelves, perShelf = 256, 8
	period            = 30 * time.Minute
	// maxText is how many bytes of a text are remembered.
	maxText = 200
)

// A Call is a slow call.
type Call struct {
	Began time.Time
	Took  time.Duration
	// Tool is the path of the tool. Digest and Version are those of the module that answered.
	Tool, Digest, Version string
	// Door is the door that it came through, Principal the name of the caller, and Client the caller's address. Caller distinguishes the caller from
	// others of that name, if there can be any. RequestID is the id of the request.
	Door, Principal, Caller, Client, RequestID string
	// Code is the error code if it failed, or empty.
	Code wasmtools.Code
	// Phases are the times of its parts, and Uses the capabilities that it used.
	Phases []web.Phase
	Uses   []wasmtools.Use
}

// Calls has the slowest calls. It is an observer of requests.
type Calls struct {
	seed    maphash.Seed
	shelves [shelves]shelf
}

// A shelf has the slowest calls of some tools.
type shelf struct {
	// least is the time that a call has to exceed, and ends when the period ends, both in nanoseconds: most calls only look at these.
	least, ends atomic.Int64

	mu          sync.Mutex
	now, before []Call
}

var _ web.Observer = (*Calls)(nil)

// New returns an observer without calls.
func New() *Calls { return &Calls{seed: maphash.MakeSeed()} }

// Answered remembers a request that has called a tool, if it is one of the slowest.
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

// fastest returns the index of the call that took the least time. s.mu is held.
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

// List returns the remembered calls, the slowest first.
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
