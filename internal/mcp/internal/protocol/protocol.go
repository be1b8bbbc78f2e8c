// Package protocol answers the requests of the Model Context Protocol, whatever brings them: HTTP without sessions, a session over
// HTTP, or two pipes. One table says which methods there are, and in which versions.
//
// It knows no transport. A transport reads a [Request], has [Server.Answer] answer it, and brings the client the [Answer]. What the
// server offers is a list of features: each is a file with its methods, and a line in [Server.features].
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
	// Ready is closed once the set has every tool. A call of an unknown tool waits for that. If nil, calls don't wait.
	Ready <-chan struct{}
}

// A Server answers requests. It is safe for concurrent use, and keeps nothing between two of them.
type Server struct {
	set        *toolset.Set
	ready      <-chan struct{}
	methods    map[string]method
	identity   string // a member of each modern result's _meta
	discovered string // what server/discover says, but for how long it is true
	begun      string // what initialize says, but for the version
}

// New returns the server of a set.
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

// add returns the members with one more. Its value is one that can be encoded.
func (m members) add(name string, value any) members {
	if len(m) > 0 {
		m = append(m, ',')
	}
	encoded, _ := json.Marshal(value)
	return append(append(append(append(m, '"'), name...), `":`...), encoded...)
}

// instruct returns the members with the server's instructions, if it has some.
func (m members) instruct(instructions string) members {
	if instructions == "" {
		return m
	}
	return m.add("instructions", instructions)
}

// A feature is a part of the protocol.
type feature struct {
	name       string // of the capability that clients see, if there is one
	capability string // JSON; if empty, clients see none
	methods    []method
}

// features returns what the server offers.
func (s *Server) features() []feature {
	return []feature{s.discovery(), s.tools(), s.sessions()}
}

// A method is what a request can ask for.
type method struct {
	name   string
	eras   [2]bool // the versions that have it
	early  bool    // a session that has not begun has it, too
	answer func(ctx context.Context, r *Request) Answer
}

var (
	modernOnly = [2]bool{toolset.Modern: true}
	everywhere = [2]bool{toolset.Modern: true, toolset.Legacy: true}
)

// Versions returns the versions of the protocol that are spoken, the newest first.
func Versions() []string { return append([]string{Version}, olderVersions...) }

// Answer answers a request. It returns when the request has ended, and the transport has to bring the client the answer. A panic of
// a Go function that is called passes through.
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

// maxShown is how much of an id a trace shows, in bytes.
const maxShown = 64

// describe tells whoever records the request what it is.
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

// find returns the method that a request asks for, or why it can't.
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

// view returns what the client sees under the generation that its request goes by.
func (s *Server) view(r *Request) *toolset.View {
	return s.set.ViewOf(r.Call.Generation, r.Namespace, r.Call.Principal)
}

// scope says who may use what the client keeps of an answer.
func (r *Request) scope() string { return rpc.Scope(r.Call.Principal == wasmtools.Everybody()) }
