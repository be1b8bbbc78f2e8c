// Package toolset is what the Model Context Protocol shows of a route table: the list of tools, with schemas that MCP clients accept, and calls,
// whose results and errors become content blocks.
//
// It knows neither HTTP nor JSON-RPC's framing, so that all transports of MCP share it. A [Set] follows a table. A [View]
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

// Info is how a server describes itself.
type Info struct {
	Name, Title, Version, Instructions string
}

// Options are the settings of a Set. The zero value is usable.
type Options struct {
	// Invoker calls the tools. Sets and doors with the same Invoker share its memory budget. If nil, the set has its own.
	Invoker *invoker.Invoker
	// Search says when clients search for tools. Empty means SearchAuto.
	Search Search
	// Info is how the server describes itself. Zero means the name "toolsrv" and the version "0.1.0".
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

	searches chan struct{} // has one value for each running search

	lexicons sync.Mutex // guards lexicon and the words of entries: one search makes them, and others wait
	lexicon  *lexicon

	mu        sync.Mutex
	listeners []*func()
	changed   chan struct{} // has room for one value
	stop      chan struct{}
	stopped   chan struct{}
	closeOnce sync.Once
}

// New returns the set of a table, which it follows until Close. It panics if table is nil, or Search is not a known value.
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
	s.tell(nil) // there may have been a change since then
	go s.notify()
	return s
}

// Info returns what the server says of itself.
func (s *Set) Info() Info { return s.info }

// NotYet returns the error for a name without a tool while tools may still appear in a moment, or nil if none will. It does not check which tools may
// appear, since a name may stand for several paths.
func (s *Set) NotYet() *wasmtools.Error { return invoke.NotYet(s.made.Current().generation, "/") }

// ViewsMade returns how many views have been made. Making one looks at every tool.
func (s *Set) ViewsMade() int64 { return s.viewsMade.Load() }

// Close ends the subscription to the table, and waits for running listeners. The set no longer changes then. Close returns nil and can be called
// twice.
func (s *Set) Close() error {
	s.unsubscribe()
	s.made.Close()
	s.closeOnce.Do(func() { close(s.stop) })
	<-s.stopped
	return nil
}

// Subscribe calls f soon after the table has changed, and may call it once for several changes that follow each other closely. A listener's list has
// changed if the List of its [Set.Edition] has. f is called one call at a time. Once the returned function has returned, no further call begins.
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

// tell signals a new generation to the goroutine that calls the listeners.
func (s *Set) tell(*wasmtools.Generation) {
	select {
	case s.changed <- struct{}{}:
	default: // a signal is pending already
	}
}

// notify calls the listeners after changes.
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
