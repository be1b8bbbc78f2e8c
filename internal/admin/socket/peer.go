package socket

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/user"
	"strconv"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// Origin is the origin of principals that come over the socket.
const Origin = "socket"

// Peers says who sends a request, for package web: whoever has opened the socket is an administrator with a name such as "uid 1000 (ann)".
type Peers struct{}

// Check refuses nobody.
func (Peers) Check(*http.Request) error { return nil }

// Principal returns the user at the other end of the request's connection.
func (Peers) Principal(r *http.Request, _ *wasmtools.Principal) (*wasmtools.Principal, error) {
	p, ok := r.Context().Value(peerKey{}).(*wasmtools.Principal)
	if !ok {
		return nil, &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: "The system doesn't say who is asking"}
	}
	return p, nil
}

type peerKey struct{}

// withPeer notes the user at the other end of a connection, for its requests.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if p, ok := conn.(*placed); ok {
		conn = p.Conn
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	uid, err := peerOf(unix)
	if err != nil {
		return ctx
	}
	p, err := User(uid)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// User returns a user of the system as an administrator.
func User(uid int) (*wasmtools.Principal, error) {
	name := fmt.Sprintf("uid %d", uid)
	p, err := wasmtools.NewPrincipal(name, Origin, "*")
	if u, unknown := user.LookupId(strconv.Itoa(uid)); unknown == nil {
		if named, odd := wasmtools.NewPrincipal(name+" ("+u.Username+")", Origin, "*"); odd == nil {
			p = named
		}
	}
	if err != nil {
		return nil, err
	}
	return p.WithRoles(wasmtools.RoleAdmin)
}
