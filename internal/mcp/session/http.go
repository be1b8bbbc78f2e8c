package session

import (
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/web"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// A Request is an HTTP request as a door passes it on.
type Request struct {
	// Namespace is the namespace in the URL. If empty, all tools.
	Namespace string
	// Message is the message of a POST. If the request has no session id, the door has read it. Otherwise Serve reads it into Message, so that the
	// door can name the request if it fails.
	Message *rpc.Message
	// Read reads the body of a POST, once Serve has found its session. The body belongs to Serve until Serve returns. The error that Read returns
	// can be passed to Fail.
	Read func() ([]byte, error)
	// Counted is called, if not nil, when the memory of the arguments that Read has read is counted for a call.
	Counted func()
}

// HasSession reports whether a request has a session id. Its body must not be read before the session is found.
func HasSession(h http.Header) bool { return len(h[headerSession]) > 0 }

// Serve answers a GET, POST or DELETE of a client of a version before 2026-07-28.
func (s *Sessions) Serve(x *web.Exchange, q Request) {
	method := x.Request().Method
	if method == http.MethodPost && !HasSession(x.Request().Header) {
		s.serveFirst(x, q)
		return
	}
	own := s.find(x, q)
	if own == nil {
		return
	}
	defer s.give(own)
	switch method {
	case http.MethodDelete:
		x.SetOperation("session/end")
		s.end(own)
		x.WriteHeader(http.StatusNoContent)
	case http.MethodGet:
		x.SetOperation("session/stream")
		s.serveStream(x, own)
	default:
		s.servePost(x, q, own)
	}
}

// find takes the session that a request names, or answers with an error.
func (s *Sessions) find(x *web.Exchange, q Request) *session {
	h := x.Request().Header
	declared := h[headerVersion]
	if len(declared) == 1 && declared[0] == protocol.Version { // a GET or DELETE: find is not called for a POST of this version
		refuse(x, http.StatusBadRequest, nil, rpc.Invalid("Version "+protocol.Version+" has no sessions; send each message by POST"))
		return nil
	}
	if !HasSession(h) {
		refuse(x, http.StatusBadRequest, nil, rpc.Invalid("The request has no Mcp-Session-Id; a session begins with initialize"))
		return nil
	}
	if len(declared) > 1 || len(declared) == 1 && !protocol.HasSessions(declared[0]) {
		refuse(x, http.StatusBadRequest, nil, rpc.Unsupported(protocol.Versions(), strings.Join(declared, ", ")))
		return nil
	}
	if ids := h[headerSession]; len(ids) == 1 {
		switch own, err := s.take(ids[0], q.Namespace, x.Call().Principal); err {
		case nil:
			return own
		case errFull:
			refuseFull(x, nil)
			return nil
		}
	}
	refuseMissing(x)
	return nil
}

// refuseFull answers a request whose session can't be held because there are too many sessions.
func refuseFull(x *web.Exchange, id []byte) {
	refuse(x, http.StatusServiceUnavailable, id, &rpc.Fault{Code: rpc.CodeInternal, Message: "Too many sessions are open; try again later"})
}

// refuseMissing answers a request for a session that does not exist. The answer is the same for a session that has ended and for somebody else's: a
// client that guesses an id must not learn that it is valid.
func refuseMissing(x *web.Exchange) {
	refuse(x, http.StatusNotFound, nil, &rpc.Fault{Code: codeNoSession, Message: "There is no such session; begin a new one with initialize"})
}

const (
	// 404 | before 2026-07-28: there is no such session, which may have ended or be somebody else's
	codeNoSession = -32001 // the SDKs of other languages use this code
)

// serveFirst answers a POST that has no session: initialize begins one.
func (s *Sessions) serveFirst(x *web.Exchange, q Request) {
	m := q.Message
	version, ok := rpc.String(m.Version)
	switch {
	case !protocol.Begins(m) || m.ID == nil:
		refuse(x, http.StatusBadRequest, m.ID, rpc.Invalid("The request has no Mcp-Session-Id; a session begins with initialize"))
		return
	case !ok:
		refuse(x, http.StatusBadRequest, m.ID, rpc.InvalidParams("The params have no protocolVersion"))
		return
	}
	own, err := s.begin(q.Namespace, protocol.Agreed(version), x.Call().Principal)
	if err != nil {
		refuseFull(x, m.ID)
		return
	}
	defer s.give(own)
	x.Header().Set(headerSession, own.id)
	s.run(x, q, own)
	if own.Version() == "" { // initialize was refused
		s.drop(own)
	}
}

// servePost answers a message of a session.
func (s *Sessions) servePost(x *web.Exchange, q Request, own *session) {
	body, err := q.Read()
	if err != nil {
		x.Fail(err)
		return
	}
	if changed, err := x.Renew(); err != nil { // the body may have arrived long after the head
		x.Fail(err)
		return
	} else if changed {
		p := x.Call().Principal
		if ownerOf(p) != own.owner {
			refuseMissing(x)
			return
		}
		s.see(own, p)
	}
	m := q.Message
	switch wrong := m.Parse(body); {
	case wrong != nil:
		refuse(x, http.StatusBadRequest, m.ID, wrong)
	case string(m.MetaVersion) >= protocol.Version:
		refuse(x, http.StatusBadRequest, m.ID, rpc.Mismatch("MCP-Protocol-Version is not the version of the request's _meta"))
	case m.ID == nil || m.Method == nil: // a notification, or a response to a request that was never sent
		x.SetOperation("notification")
		if elsewhere := own.Note(m); elsewhere != nil {
			s.cancelElsewhere(own, elsewhere)
		}
		x.WriteHeader(http.StatusAccepted)
	default:
		s.run(x, q, own)
	}
}
