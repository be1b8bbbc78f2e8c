package server

import (
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/door"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/slow"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// administered is a server as the admin door sees it.
type administered struct{ *Server }

var _ admin.Server = administered{}

// Ready returns why the server is not ready, or nil.
func (s administered) Ready() error { return s.ready() }

// Addresses returns the addresses that the server listens on.
func (s administered) Addresses() (all []string) {
	for _, l := range s.listeners {
		all = append(all, l.Addr().String())
	}
	return all
}

// Connections returns how many clients are connected.
func (s administered) Connections() admin.Use {
	return admin.Use{Held: s.conns.clients(), Limit: s.conns.most, By: admin.CallersOf(s.conns.holders())}
}

// Streams returns how many streams are open.
func (s administered) Streams() admin.Use {
	taken, most, by := s.streams.State()
	return admin.Use{Held: int64(taken), Limit: int64(most), By: admin.CallersOf(by)}
}

// Sessions returns how many MCP sessions there are.
func (s administered) Sessions() *admin.Use {
	for _, d := range s.doors {
		if d, ok := d.(mcpDoor); ok {
			open, most, by := d.Door.Sessions()
			return &admin.Use{Held: int64(open), Limit: int64(most), By: admin.CallersOf(by)}
		}
	}
	return nil
}

// Slow returns the slowest calls of the last hour.
func (s administered) Slow() []slow.Call { return s.slow.List() }

// Principals returns the callers that are known by name.
func (s administered) Principals() []*wasmtools.Principal { return s.inForce().auth.Principals() }

// isOff reports whether the door is switched off in a generation; nil means the current one. It is off if the configuration says so, or if the
// configuration says nothing and there are no tokens with names: callers with such tokens may use the door for themselves.
func (s administered) isOff(g *wasmtools.Generation) bool {
	now := s.under(g)
	return now.Admin.Disabled || !now.Admin.Enabled && now.named.Open()
}

// open opens both ways in for operators: the door and the socket.
func (s administered) open(c *config.Config) error {
	target := &admin.Target{Service: s.service, Server: s, Build: admin.ThisBuild()}
	s.mount(door.Path, door.New(target, door.Options{Off: s.isOff}))
	path := socket.Of(c)
	if path == "" {
		return nil
	}
	own := web.NewMux(web.Options{Dependencies: []web.Dependency{socket.Peers{}}, Logger: s.logger, Observers: []web.Observer{attempts{s.service.Audit}}})
	own.Mount(door.Path, door.New(target, door.Options{Local: true}))
	var err error
	if c.Admin.Socket == "" {
		err = local.MakeDirectory(c.State.Directory)
	}
	if err == nil {
		s.admin, err = socket.Open(path, own, s.logger)
	}
	switch {
	case err == nil:
		s.logger.Info("administered over a socket", "path", path)
	case c.Admin.Socket != "":
		return err
	case c.State.Implied:
		s.logger.Info("the server can't be administered over a socket", "error", err)
	default:
		s.logger.Warn("the server can't be administered over a socket", "error", err)
	}
	return nil
}
