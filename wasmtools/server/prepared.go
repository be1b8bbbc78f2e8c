package server

import (
	"errors"
	"sync"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// prepared is a configuration that is not in force yet. No other reload can begin until Close.
type prepared struct {
	server       *Server
	before, next *configuration
	unlock       func()
}

var _ admin.Prepared = (*prepared)(nil)

// Prepare reads the configuration again, and makes everything that the configuration needs, unless this is
// only a check.
func (s administered) Prepare(looks bool) (admin.Prepared, error) {
	invalid := func(err error) error {
		return &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: "The configuration stays as it was: " + err.Error()}
	}
	if s.load == nil {
		return nil, invalid(errors.New("the program that runs the server can't reload it"))
	}
	s.reload.Lock() // locked before the file is read, so that the reload that begins last also takes effect last
	unlock := sync.OnceFunc(s.reload.Unlock)
	var before, next *configuration
	c, err := s.load()
	if err == nil {
		before, next, err = s.prepare(c, looks)
	}
	if err != nil {
		if !looks {
			s.reloads.end(err)
		}
		unlock()
		return nil, invalid(err)
	}
	return &prepared{s.Server, before, next, unlock}, nil
}

// Close lets other reloads begin.
func (p *prepared) Close() { p.unlock() }

// Apply puts the configuration in force.
func (p *prepared) Apply() error { return p.server.apply(p.before, p.next) }

// Changes returns the changes that the configuration makes.
func (p *prepared) Changes() admin.Reloading {
	difference := configured.DifferenceOf(p.before.Config, p.next.Config)
	was, is := p.before.tokens.Names(), p.next.tokens.Names()
	r := admin.Reloading{
		Settings: difference.Settings, Limits: difference.Limits, Grants: difference.Grants,
		TokensAdded: without(is, was), TokensRemoved: without(was, is), Restart: configured.NeedRestart(p.server.started, p.next.Config),
	}
	g := p.server.service.Table.Current()
	entries := configured.EntriesOf(p.next.Config)
	for _, route := range g.Routes() {
		_, named := entries.Nearest(route.Path)
		on := named == p.next.Tools.Allowlist
		if s, ok := g.Switch(route.Path); ok {
			on = s.Enabled
		}
		switch wasOn := route.Enabled || route.Ungranted; {
		case on && !wasOn:
			r.Enabled = append(r.Enabled, route.Path)
		case !on && wasOn:
			r.Disabled = append(r.Disabled, route.Path)
		}
		lacked, lacks := len(route.Tool.Missing) > 0, len(p.next.Granted.For(route.Path, route.Tool.Needs).Missing) > 0
		switch {
		case lacked && !lacks:
			r.Granted = append(r.Granted, route.Path)
		case !lacked && lacks:
			r.Withdrawn = append(r.Withdrawn, route.Path)
		}
	}
	return r
}
