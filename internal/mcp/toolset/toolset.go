// Package toolset is what the Model Context Protocol shows of a route table: the list of tools, with their schemas as MCP
// clients take them, and calls, whose results and errors become content blocks.
//
// It knows neither HTTP nor JSON-RPC's framing, so that every way to speak MCP shares it. A [Set] follows a table. A [View]
// is what one caller sees of a namespace at one moment: it lists tools page by page, from bytes that are built once, and
// begins calls. A [Result] is written for one [Era] of the protocol.
package toolset

import (
	"cmp"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/follow"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// An Era is a group of protocol versions that see tools in the same form.
type Era uint8

const (
	// Legacy are the versions up to 2025-11-25. Their output schemas and structured results are objects.
	Legacy Era = iota
	// Modern are the versions from 2026-07-28 on.
	Modern
)

// Info is what a server says of itself.
type Info struct {
	Name, Title, Version, Instructions string
}

// Options are the settings of a Set. The zero value is usable.
type Options struct {
	// Invoker calls the tools. Sets and doors with the same Invoker share its memory. If nil, the set has its own.
	Invoker *invoker.Invoker
	// Search says when clients search for tools. If empty, SearchAuto.
	Search Search
	// Info is what the server says of itself. Zero means the name is "toolsrv" and the version "0.1.0".
	Info Info
	// Logger gets a warning for each tool that can't be shown as its author wrote it. If nil, nothing is logged.
	Logger *slog.Logger
}

// A Set is the tools of a route table as MCP shows them. It is safe for concurrent use.
type Set struct {
	info        Info
	invoker     *invoker.Invoker
	log         *slog.Logger
	search      Search
	own         ownSchemas
	unsubscribe func()

	made      *follow.Derived[derived]
	editions  editions
	viewsMade atomic.Int64

	searches chan struct{} // has one for each search that runs

	lexicons sync.Mutex // guards lexicon, with the words of entries; each is made by one search, and others wait
	lexicon  *lexicon

	mu        sync.Mutex
	listeners []*func()
	changed   chan struct{} // has room for one
	stop      chan struct{}
	stopped   chan struct{}
	closeOnce sync.Once
}

// New returns the set of a table, which it follows until Close. It panics if table is nil, or Search is not a known one.
func New(table *wasmtools.RouteTable, o Options) *Set {
	if table == nil {
		panic("toolset.New: table is nil; make one with wasmtools.NewRouteTable")
	}
	search := cmp.Or(o.Search, SearchAuto)
	if !slices.Contains([]Search{SearchAuto, SearchNever, SearchAlways}, search) {
		panic("toolset.New: unknown search " + strconv.Quote(string(search)))
	}
	s := &Set{
		search: search, own: newOwnSchemas(),
		info:     o.Info,
		invoker:  o.Invoker,
		log:      cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		searches: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		changed:  make(chan struct{}, 1),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	if s.invoker == nil {
		s.invoker = invoker.New(invoker.Options{})
	}
	s.info.Name, s.info.Version = cmp.Or(o.Info.Name, "toolsrv"), cmp.Or(o.Info.Version, "0.1.0")
	s.made = follow.Derive(table, s.newDerived)
	s.unsubscribe = table.Subscribe(s.tell)
	s.tell(nil) // of what has changed in between
	go s.notify()
	return s
}

// Info returns what the server says of itself.
func (s *Set) Info() Info { return s.info }

// NotYet returns the error for a name that no tool has, while any may come in a moment; if nil, none will. A name may stand for several paths, so
// it is not asked which tools are coming.
func (s *Set) NotYet() *wasmtools.Error { return invoke.NotYet(s.made.Current().generation, "/") }

// ViewsMade returns how many views have been made: each had a look at every tool.
func (s *Set) ViewsMade() int64 { return s.viewsMade.Load() }

// Close ends the subscription to the table, and waits for listeners that run. The set stays as it is then. Close returns nil
// and can be called twice.
func (s *Set) Close() error {
	s.unsubscribe()
	s.made.Close()
	s.closeOnce.Do(func() { close(s.stop) })
	<-s.stopped
	return nil
}

// Subscribe has f called soon after the table has changed; changes that follow each other closely may be told of once. What a
// listener sees has changed if the List of its [Set.Edition] has. Calls come one at a time. Once the returned function has
// returned, no call of f begins any more.
func (s *Set) Subscribe(f func()) (unsubscribe func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := &f
	s.listeners = append(slices.Clone(s.listeners), entry)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listeners = slices.DeleteFunc(slices.Clone(s.listeners), func(e *func()) bool { return e == entry })
	}
}

// tell tells the listeners that there is another generation.
func (s *Set) tell(*wasmtools.Generation) {
	select {
	case s.changed <- struct{}{}:
	default: // the last change has not been told yet
	}
}

// notify tells the listeners of changes.
func (s *Set) notify() {
	defer close(s.stopped)
	for {
		select {
		case <-s.stop:
			return
		case <-s.changed:
		}
		s.editions.forget(s.made.Current())
		s.mu.Lock()
		listeners := s.listeners
		s.mu.Unlock()
		for _, f := range listeners {
			select {
			case <-s.stop:
				return
			default:
				(*f)()
			}
		}
	}
}
