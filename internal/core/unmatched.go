package core

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// maxUnmatched is how many entries get a line of their own. If the directory is empty by mistake, no entry matches a tool.
const maxUnmatched = 20

// A complaint is a log line about an entry of the configuration.
type complaint struct{ key, what string }

// WarnUnmatched warns of entries of the configuration in force that match no tool, and of errors in its grants. Call it after all files have been
// read, since a tool that is still being read is not a mistake, and from one goroutine at a time.
func (s *Service) WarnUnmatched() {
	c := s.InForce().Config
	before := s.complaints
	s.complaints = nil
	defer func() { s.tellMended(before) }()
	var paths []string
	for _, route := range s.Table.Tools() {
		paths = append(paths, route.Path)
	}
	s.reviewGrants(c)
	var files []string
	if len(c.Pins) > 0 {
		for _, f := range s.Catalog.Files() {
			files = append(files, f.Name)
			if refused, ok := errors.AsType[*catalog.PinError](f.Err); ok { // the file's tools are known, although nobody may call them
				paths = append(paths, refused.Paths...)
			}
		}
	}
	unmatched := configured.UnmatchedOf(c, paths, files)
	for _, u := range unmatched {
		s.complaints = append(s.complaints, complaint{u.Key, u.Entry + " is not the name of a tool"})
	}
	for i, u := range unmatched {
		if i == maxUnmatched {
			s.Logger.Warn("more entries of the configuration match no tool", "entries", len(unmatched)-i)
			return
		}
		attrs := []any{"key", u.Key}
		if u.Entry != "" {
			attrs = append(attrs, "entry", u.Entry)
		}
		if u.Meant != "" {
			attrs = append(attrs, "did_you_mean", u.Meant)
		}
		s.Logger.Warn("an entry of the configuration matches no tool that is served", attrs...)
	}
}

// tellMended logs which earlier complaints no longer apply.
func (s *Service) tellMended(before []complaint) {
	wrong := make(map[string]bool, len(s.complaints)) // complaints by their text, since the numbers of entries in the keys may change
	for _, c := range s.complaints {
		wrong[c.what] = true
	}
	mended := slices.DeleteFunc(before, func(c complaint) bool { return wrong[c.what] })
	for i, c := range mended {
		if i == maxUnmatched {
			s.Logger.Info("more entries of the configuration are no longer wrong", "entries", len(mended)-i)
			return
		}
		s.Logger.Info("an entry of the configuration is no longer wrong", "key", c.key, "was", c.what)
	}
}

// reviewGrants logs errors in the grants of a configuration. It is called after all files have been read.
func (s *Service) reviewGrants(c *config.Config) {
	var tools []*wasmtools.Tool
	for _, route := range s.Table.Tools() {
		tools = append(tools, route.Tool)
	}
	findings := broker.Review(c, tools)
	for _, f := range findings {
		s.complaints = append(s.complaints, complaint{f.Key, f.Message})
	}
	for i, f := range findings {
		if i == maxUnmatched {
			s.Logger.Error("more is wrong with the grants: see `toolsrv check --config`", "entries", len(findings)-i)
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
		s.Logger.Log(context.Background(), level, "a grant: "+f.Message, attrs...)
	}
}
