// Package mcp is the door of the Model Context Protocol over HTTP: it serves the tools of a route table to agents at /mcp, and
// the tools of a namespace and below it at /mcp/{namespace}.
//
// It speaks the stateless protocol, version 2026-07-28. Each request is complete, so the door keeps no state between requests. Requests of older
// versions belong to a session: package session answers them. This package reads messages and checks that their headers agree with them. Package
// protocol answers the messages, and package toolset holds what clients see of the tools. docs/mcp.md describes the whole interface.
package mcp

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/signing"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Path is where a Door is mounted.
const Path = "/mcp"

// Versions returns the versions of the protocol that doors and sessions speak, the newest first.
func Versions() []string { return protocol.Versions() }

// Options are the settings of a Door. The zero value is usable.
type Options struct {
	// Streams are the places for streams of changes, including those of sessions. If all are taken, a stream is refused with CodeOverloaded. If nil,
	// the door has 10,000 of its own.
	Streams *web.Places
	// Sessions bounds the sessions of clients of older versions: see [session.Options]. Zero means 10,000.
	Sessions int
	// Keys sign the ids of sessions, and Peers are the processes with the same keys: see [session.Options]. If nil, there are no other processes.
	Keys  *signing.Keys
	Peers state.Peers
}

// A Door serves a set of tools. Mount it at Path.
type Door struct {
	set         *toolset.Set
	places      *web.Places
	streams     atomic.Int64 // how many streams are open
	changes     changes
	unsubscribe func()
	idle        sync.Pool // of *exchange

	protocol *protocol.Server
	sessions *session.Sessions // sessions of clients of older versions
}

var _ web.Door = (*Door)(nil)

// NewDoor returns a door for a set, whose changes it follows until Close. It panics if set is nil.
func NewDoor(set *toolset.Set, o Options) *Door {
	if set == nil {
		panic("mcp.NewDoor: set is nil; make one with toolset.New")
	}
	d := &Door{set: set, protocol: protocol.New(set, protocol.Options{}), places: o.Streams}
	if d.places == nil {
		d.places = web.NewPlaces(10_000)
	}
	d.idle.New = func() any { return &exchange{door: d} }
	d.sessions = session.New(set, session.Options{Max: o.Sessions, Keys: o.Keys, Peers: o.Peers})
	d.unsubscribe = set.Subscribe(d.changes.tell)
	return d
}

// Close ends the subscription to the set, and all sessions. The door continues to serve, but starts no new session. Close returns nil and can be
// called twice.
func (d *Door) Close() error {
	d.unsubscribe()
	return d.sessions.Close()
}

// State returns the numbers of sessions and streams.
func (d *Door) State() (sessions int, streams int64) { return d.sessions.Number(), d.streams.Load() }

// Sessions returns how many sessions there are, how many there may be, and how many each caller has.
func (d *Door) Sessions() (open, most int, by map[string]int64) { return d.sessions.State() }

// EndSessions ends the sessions of principals that are no longer admitted.
func (d *Door) EndSessions(ended func(*wasmtools.Principal) bool) { d.sessions.End(ended) }

// Policy lets the door read bodies itself.
func (d *Door) Policy() web.Policy { return web.Policy{Unbounded: true} }

// Serve answers one request.
func (d *Door) Serve(x *web.Exchange) {
	namespace, ok := namespaceOf(x.Request().URL.Path)
	if !ok {
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotFound})
		return
	}
	if x.Request().Method != http.MethodPost {
		d.serveElse(x, namespace)
		return
	}
	e := d.idle.Get().(*exchange)
	e.begin(x, namespace)
	e.serve()
	s := e.subscription
	// This is not deferred, because after a panic something may still hold the exchange. The exchange is released before a stream begins, since a
	// stream lasts for hours and should hold no more than it needs.
	e.release()
	if s != nil {
		s.serve()
	}
}

// serveElse answers requests with methods other than POST. Only sessions use these methods.
func (d *Door) serveElse(x *web.Exchange, namespace string) {
	if !x.Allow(http.MethodPost, http.MethodGet, http.MethodDelete) {
		return
	}
	if x.Request().Method == http.MethodGet {
		leave, err := d.takeStream(x)
		if err != nil {
			x.Fail(err)
			return
		}
		defer leave()
	}
	d.sessions.Serve(x, session.Request{Namespace: namespace})
}

// namespaceOf returns the namespace in a path, or false if it can't be one. A namespace without tools is allowed, since it may get some in a moment.
func namespaceOf(path string) (namespace string, ok bool) {
	namespace = strings.TrimPrefix(path, Path)
	if namespace == "" || namespace == "/" {
		return "", true
	}
	namespace = namespace[1:]
	return namespace, naming.CheckNamespace(namespace) == nil
}
