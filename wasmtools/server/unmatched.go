package server

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// maxUnmatched is how many entries have a line each. In a directory that is empty by mistake, no entry matches a tool.
const maxUnmatched = 20

// A complaint is a line of the log on an entry of the configuration.
type complaint struct{ key, what string }

// settledEvery is how often to look whether the catalog has settled after a reload.
const settledEvery = 20 * time.Millisecond

// warnUnmatched has the configuration in force compared with the tools, now or once the catalog has settled: a reload may let tools in a
// moment later, as a higher limit of memory does. s.reload is held.
func (s *Server) warnUnmatched() {
	if s.core.catalog.Settled() {
		s.core.warnUnmatched(s.core.inForce().Config)
		return
	}
	select {
	case s.unmatched <- struct{}{}:
	default: // it will be
	}
}

// warnWhenSettled does what warnUnmatched leaves for later.
func (s *Server) warnWhenSettled(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.unmatched:
		}
		for ticker := time.NewTicker(settledEvery); !s.core.catalog.Settled(); {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		s.reload.Lock()
		s.core.warnUnmatched(s.core.inForce().Config)
		s.reload.Unlock()
	}
}

// warnUnmatched warns of entries of a configuration that match no tool. It is called when all files have been read: a tool that is
// still being read is not a mistake.
func (k *core) warnUnmatched(c *config.Config) {
	before := k.complaints
	k.complaints = nil
	defer func() { k.tellMended(before) }()
	var paths []string
	for _, route := range k.catalog.Table().Tools() {
		paths = append(paths, route.Path)
	}
	k.reviewGrants(c)
	unmatched := c.Unmatched(paths)
	for _, u := range unmatched {
		k.complaints = append(k.complaints, complaint{u.Key, u.Entry + " is the name of no tool"})
	}
	for i, u := range unmatched {
		if i == maxUnmatched {
			k.logger.Warn("more entries of the configuration match no tool", "entries", len(unmatched)-i)
			return
		}
		attrs := []any{"key", u.Key}
		if u.Entry != "" {
			attrs = append(attrs, "entry", u.Entry)
		}
		if u.Meant != "" {
			attrs = append(attrs, "did_you_mean", u.Meant)
		}
		k.logger.Warn("an entry of the configuration matches no tool that is served", attrs...)
	}
}

// tellMended logs which complaints of before are none any more.
func (k *core) tellMended(before []complaint) {
	wrong := make(map[string]bool, len(k.complaints)) // the keys have the numbers of entries, which may move
	for _, c := range k.complaints {
		wrong[c.what] = true
	}
	mended := slices.DeleteFunc(before, func(c complaint) bool { return wrong[c.what] })
	for i, c := range mended {
		if i == maxUnmatched {
			k.logger.Info("more entries of the configuration are not wrong any more", "entries", len(mended)-i)
			return
		}
		k.logger.Info("an entry of the configuration is not wrong any more", "key", c.key, "was", c.what)
	}
}

// reviewGrants logs what is wrong with the grants of a configuration. It is called when all files have been read.
func (k *core) reviewGrants(c *config.Config) {
	var tools []*wasmtools.Tool
	for _, route := range k.catalog.Table().Tools() {
		tools = append(tools, route.Tool)
	}
	findings := capability.Review(c, tools)
	for _, f := range findings {
		k.complaints = append(k.complaints, complaint{f.Key, f.Message})
	}
	for i, f := range findings {
		if i == maxUnmatched {
			k.logger.Error("more is wrong with the grants: see `toolsrv check --config`", "entries", len(findings)-i)
			return
		}
		level := slog.LevelError
		if f.Warning {
			level = slog.LevelWarn
		}
		attrs := []any{"key", f.Key}
		if f.Line > 0 {
			attrs = append(attrs, "line", f.Line)
		}
		k.logger.Log(context.Background(), level, "a grant: "+f.Message, attrs...)
	}
}
