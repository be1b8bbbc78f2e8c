// Package protocol answers the requests of the Model Context Protocol, independent of the transport: HTTP without sessions, a session over HTTP, or
// two pipes. One table says which methods exist, and in which versions.
//
// A transport reads a [Request], calls [Server.Answer], and sends the [Answer] to the client. What the server offers is a list of features: each is a
// file with its methods, and a line in [Server.features].
package protocol

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Version is the first version whose requests need no session.
const Version = "2026-07-28"

// Options are the settings of a Server. The zero value is usable.
type Options struct {
	// Ready is closed once the set has every tool. Until then, a call of an unknown tool waits. If nil, calls don't wait.
	Ready <-chan struct{}
}

// A Server answers requests. It is safe for concurrent use, and keeps no state between requests.
type Server struct {
	set        *toolset.Set
	ready      <-chan struct{}
	methods    map[string]method
	identity   string // a member of _meta in each result of modern versions
	discovered string // the answer to server/discover, without how long it may be cached
	begun      string // the answer to initialize, without the version
}

// New returns the server for a set of tools.
func New(set *toolset.Set, o Options) *Server {
	s := &Server{set: set, ready: o.Ready, methods: map[string]method{}}
	capabilities := map[string]json.RawMessage{}
	for _, f := range s.features() {
		if f.capability != "" {
			capabilities[f.name] = json.RawMessage(f.capability)
		}
		for _, m := range f.methods {
			s.methods[m.name] = m
		}
	}
	info := set.Info()
	self := rpc.Implementation{Name: info.Name, Title: info.Title, Version: info.Version}
	s.identity = string(members{}.add(rpc.MetaServer, self))
	s.begun = string(members{}.add("capabilities", capabilities).add("serverInfo", self).instruct(info.Instructions))
	s.discovered = string(members{}.add("supportedVersions", Versions()).add("capabilities", capabilities).instruct(info.Instructions))
	return s
}

// members are the members of a JSON object, without its braces.
type members []byte

// add returns the members and one more. It must be possible to encode the value as JSON.
func (m members) add(name string, value any) members {
	if len(m) > 0 {
		m = append(m, ',')
	}
	encoded, _ := json.Marshal(value)
	return append(append(append(append(m, '"'), name...), `":`...), encoded...)
}

// instruct returns the members with the server's instructions, if it has any.
func (m members) instruct(instructions string) members {
	if instructions == "" {
		return m
	}
	return m.add("instructions", instructions)
}

// A feature is a part of the protocol.
type feature struct {
	name       string // name of the capability that clients see, if there is one
	capability string // JSON; if empty, clients are not told of it
	methods    []method
}

// features returns what the server offers.
func (s *Server) features() []feature {
	return []feature{s.discovery(), s.tools(), s.sessions()}
}

// A method is a method of the protocol.
type method struct {
	name   string
	eras   [2]bool // which versions have the method
	early  bool    // the method may be called before a session has begun
	answer func(ctx context.Context, r *Request) Answer
}

var (
	modernOnly = [2]bool{toolset.Modern: true}
	everywhere = [2]bool{toolset.Modern: true, toolset.Legacy: true}
)

// Versions returns the supported versions of the protocol, the newest first.
func Versions() []string { return append([]string{Version}, olderVersions...) }

// Answer answers a request. It returns when the request has ended, and the transport then sends the answer to the client. It does not recover from a
// panic in a Go function that a call runs.
func (s *Server) Answer(ctx context.Context, r *Request) Answer {
	m, wrong := s.find(r)
	if wrong != nil {
		return r.Refuse(wrong)
	}
	r.Transport.SetOperation(m.name)
	if t := r.Transport.Trace(); t != nil {
		r.describe(t, m.name)
	}
	a := m.answer(ctx, r)
	if r.silent.Load() {
		a.Text, a.Page, a.Tail = nil, nil, nil
	}
	return a
}

// maxShown is how many bytes of an id a trace shows.
const maxShown = 64

// describe adds to the request's trace what the request is.
func (r *Request) describe(t *trace.Request, method string) {
	m := &t.Message
	m.Method, m.ID, m.Version = method, text.Clip(strings.Trim(string(r.ID), `"`), maxShown), string(r.MetaVersion)
	if r.Conversation != nil && !r.isModern() {
		m.Version = r.Conversation.Version()
	}
	if m.Parent, _ = rpc.String(r.Parent); m.Parent != "" {
		m.State, _ = rpc.String(r.State)
	}
}

// find returns the method of a request, or a fault.
func (s *Server) find(r *Request) (method, *rpc.Fault) {
	if r.isModern() {
		switch {
		case r.Capabilities == nil:
			return method{}, rpc.InvalidParams("The request has no _meta with " + rpc.MetaCapabilities)
		case string(r.MetaVersion) != Version:
			return method{}, rpc.Unsupported(Versions(), string(r.MetaVersion))
		}
	}
	m, ok := s.methods[string(r.Method)]
	switch {
	case !ok || !m.eras[r.era()]:
		return m, rpc.NoMethod()
	case !r.isModern() && !m.early && (r.Conversation == nil || r.Conversation.Version() == ""):
		return m, rpc.Invalid("The session has not begun: send initialize first, or name the protocol version in _meta")
	}
	return m, nil
}

// view returns what the client sees in the generation of its request.
func (s *Server) view(r *Request) *toolset.View {
	return s.set.ViewOf(r.Call.Generation, r.Namespace, r.Call.Principal)
}

// scope says who may use a cached answer.
func (r *Request) scope() string { return rpc.Scope(r.Call.Principal == wasmtools.Everybody()) }
