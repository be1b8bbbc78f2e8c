package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	inner "github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// Reload applies a new configuration while requests run: tokens, hosts and origins, policy, limits and grants. All of it takes effect at
// one moment. The old configuration holds for requests that have been read by then, and the new one for those that are still arriving. A changed
// setting that needs a restart is logged and stays as it is. After an error the old configuration stays in force. Reload is safe for
// concurrent use.
func (s *Server) Reload(c *config.Config) error {
	s.reload.Lock()
	defer s.reload.Unlock()
	before, next, err := s.prepare(c, false)
	if err != nil {
		s.reloads.end(err)
		refusedReload(s.service.Audit, err)
		return err
	}
	err = reloading(s.service.Audit, differenceOf(before, next), func() error { return s.apply(before, next) })
	if errors.Is(err, audit.ErrNotKept) { // nothing was applied
		s.reloads.prevented.Add(1)
		s.reloads.last.Store(true)
	}
	return err
}

// ReloadFailed records in the metrics that a configuration could not be read, and why. Reload itself records all other failures.
func (s *Server) ReloadFailed(err error) { s.reloads.end(err) }

// reloads counts the outcomes of reloads since the start.
type reloads struct {
	ok, failed atomic.Uint64
	prevented  atomic.Uint64 // by [audit] strict
	last       atomic.Bool   // the last reload failed, or was refused
	at         atomic.Int64  // when a configuration was last put in force, in Unix milliseconds; 0 if that was at the start
}

// end counts one.
func (r *reloads) end(err error) {
	r.last.Store(err != nil)
	if err != nil {
		r.failed.Add(1)
		return
	}
	r.ok.Add(1)
	r.at.Store(time.Now().UnixMilli())
}

// prepare makes the next configuration, or one that is only checked. s.reload is held until after apply.
func (s *Server) prepare(c *config.Config, looks bool) (before, next *configuration, err error) {
	if s.over {
		return nil, nil, errors.New("apply the new configuration: the server is closed")
	}
	before = s.inForce()
	next, err = s.configure((*inner.Handle)(c).Config(), before, looks)
	return before, next, err
}

// apply puts in force what prepare has made.
func (s *Server) apply(before, next *configuration) (err error) {
	defer func() { s.reloads.end(err) }()
	routes := s.service.Table.Current()
	if err := s.service.Publish(next); err != nil {
		return err
	}
	follow(s, next)
	s.writeTimeout.Store(int64(writeTimeout(next.Config)))
	next.named.InForce()
	s.recheck()
	s.logReload(before, next, routes, differenceOf(before, next))
	if s.listed { // otherwise logReady will do it
		s.warnUnmatched()
	}
	return nil
}

// A difference has the changes of a new configuration.
type difference []changes

// changes are the changes of one kind.
type changes struct {
	kind string
	all  []string
}

// atMost returns the first changes, and how many more there were.
func (c changes) atMost(most int) []string {
	if len(c.all) <= most {
		return c.all
	}
	return append(c.all[:most:most], fmt.Sprintf("and %d more", len(c.all)-most))
}

// add adds changes, if there are any.
func (d *difference) add(kind string, all []string) {
	if len(all) > 0 {
		*d = append(*d, changes{kind, all})
	}
}

func differenceOf(before, now *configuration) (d difference) {
	was, is := before.tokens.Names(), now.tokens.Names()
	d.add("tokens_added", without(is, was))
	d.add("tokens_removed", without(was, is))
	of := configured.DifferenceOf(before.Config, now.Config)
	d.add("granted", of.Grants)
	d.add("limited", of.Limits)
	d.add("settings", of.Settings)
	return d
}

// logReload logs the changes of a new configuration.
func (s *Server) logReload(before, now *configuration, routes *wasmtools.Generation, what difference) {
	restart := configured.NeedRestart(s.started, now.Config)
	for _, key := range restart {
		attrs := []any{"key", key}
		if key == "source" {
			attrs = append(attrs, "sources", changes{all: configured.SourcesOfRestart(s.started, now.Config)}.atMost(maxChanged))
		}
		s.logger.Warn("a changed setting needs a restart", attrs...)
	}
	for _, name := range s.service.Unfilled(now.Configuration) {
		s.logger.Warn("a header is not sent to the collector until a restart: its secret is gone", "key", "otlp.headers."+name)
	}
	for _, key := range configured.NeedRestart(s.started, before.Config) {
		if !slices.Contains(restart, key) {
			s.logger.Info("a setting is back at its value from the start, so it needs no restart", "key", key)
		}
	}
	current := s.service.Table.Current()
	attrs := []any{"tools", len(current.Routes())}
	enabled, disabled := switched(routes, current)
	what.add("enabled", enabled)
	what.add("disabled", disabled)
	for _, c := range what {
		attrs = append(attrs, c.kind, c.atMost(maxChanged))
	}
	s.logger.Info("configuration reloaded", attrs...)
	s.logAuth(now)
}

// maxChanged is how many changes of a kind the log line of a reload shows.
const maxChanged = 20

// without returns the names that are not in others.
func without(names, others []string) []string {
	have := make(map[string]bool, len(others))
	for _, name := range others {
		have[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return have[name] })
}

// switched returns the paths of the tools whose switch differs between two generations.
func switched(before, now *wasmtools.Generation) (on, off []string) {
	for _, route := range now.Routes() {
		switch old, ok := before.Lookup(route.Path); {
		case !ok || old.Enabled == route.Enabled:
		case route.Enabled:
			on = append(on, route.Path)
		default:
			off = append(off, route.Path)
		}
	}
	return on, off
}

// logAuth logs who is let in. It warns if that is everybody or nobody, or if a declared token has expired.
func (s *Server) logAuth(c *configuration) {
	for _, t := range c.Auth.Declared {
		if !t.Expires.IsZero() && !t.Expires.After(time.Now()) {
			s.logger.Warn("a declared token has expired, and is refused: remove its table [[auth.token]], or give it a later date", "token", t.Name, "expired", t.Expires)
		}
	}
	schemes := c.auth.Schemes()
	switch {
	case c.auth.Open():
		s.logger.Warn("auth is off: anybody who can reach the address may call every tool; set auth.tokens, or auth.required to refuse instead",
			"address", s.Addr().String())
	case len(schemes) == 1 && c.named.Open() && !c.tokens.Open() && len(c.Auth.Tokens) == 0: // no other credentials are accepted
		s.logger.Warn("auth.required is set and there is no token: every call is refused")
	default:
		names := make([]string, len(schemes))
		for i, scheme := range schemes {
			names[i] = scheme.Name
		}
		s.logger.Info("auth is on", "schemes", names, "tokens", len(c.Auth.Tokens)+len(c.Auth.Declared)+s.service.Tokens.Len())
	}
	if c.auth.Open() && isOpenToPages(c.Config) {
		s.logger.Warn("auth is off and server.cors_origins has \"*\": any web page may call every tool, if its visitor can reach the address",
			"address", s.Addr().String())
	}
}

// syncedEvery is how often the server checks, after a reload, whether the catalog has read all files.
const syncedEvery = 20 * time.Millisecond

// warnUnmatched compares the configuration in force with the tools, now or once the catalog has read all files: after a reload, more tools may appear
// a moment later, for example because a memory limit is higher. s.reload is held.
func (s *Server) warnUnmatched() {
	if s.service.Catalog.Synced() {
		s.service.WarnUnmatched()
		return
	}
	select {
	case s.unmatched <- struct{}{}:
	default: // it will be
	}
}

// warnOnceSynced makes the comparisons that warnUnmatched has left for later.
func (s *Server) warnOnceSynced(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.unmatched:
		}
		for ticker := time.NewTicker(syncedEvery); ; {
			s.reload.Lock()
			if s.service.Catalog.Synced() {
				break
			}
			s.reload.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		select {
		case <-s.unmatched: // another reload has asked for the comparison meanwhile
		default:
		}
		s.service.WarnUnmatched()
		s.reload.Unlock()
	}
}
