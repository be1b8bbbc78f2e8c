package protocol

import (
	"context"
	"slices"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
)

// initialize is the method that a session begins with.
const initialize = "initialize"

// olderVersions are the versions that have sessions, the newest first.
var olderVersions = []string{"2025-11-25", "2025-06-18"}

// HasSessions reports whether a version is a supported one that has sessions.
func HasSessions(version string) bool { return slices.Contains(olderVersions, version) }

// Agreed returns the version of a new session: the one that the client asks for, or the newest one that has sessions.
func Agreed(version string) string {
	if HasSessions(version) {
		return version
	}
	return olderVersions[0]
}

// Begins reports whether a message asks for a session.
func Begins(m *rpc.Message) bool { return string(m.Method) == initialize }

// sessions is the feature with the methods that only older versions have.
func (s *Server) sessions() feature {
	older := [2]bool{toolset.Legacy: true}
	return feature{methods: []method{
		{name: initialize, eras: older, early: true, answer: s.initialize},
		{name: "ping", eras: older, early: true, answer: s.ping},
	}}
}

// initialize begins a session.
func (s *Server) initialize(_ context.Context, r *Request) Answer {
	version, ok := rpc.String(r.Version)
	if !ok {
		return r.Refuse(rpc.InvalidParams("The params have no protocolVersion"))
	}
	version = Agreed(version)
	if r.Conversation == nil || !r.Conversation.agree(version) {
		return r.Refuse(rpc.Invalid("The session has begun already"))
	}
	s.openResult(r)
	r.Out = append(append(append(r.Out, `"protocolVersion":"`...), version...), `",`...)
	r.Out = append(append(r.Out, s.begun...), "}}"...)
	return Answer{Text: r.Out}
}

// ping shows that the server is alive.
func (s *Server) ping(_ context.Context, r *Request) Answer {
	s.openResult(r)
	r.Out = append(r.Out, "}}"...)
	return Answer{Text: r.Out}
}
