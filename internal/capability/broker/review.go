package broker

import (
	"fmt"

	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// Review returns the problems of a configuration's grants: entries that no matching tool declares, places that do not exist, and grants for every
// tool. tools are all tools. It leaves grants that match no tool to [config.Config.Unmatched]. What a tool lacks is in its Missing.
func Review(c *config.Config, tools []*wasmtools.Tool) (findings []capability.Finding) {
	kinds := builtin.With(c.Capabilities)
	for i := range c.Grants {
		g, place := &c.Grants[i], fmt.Sprintf("grant[%d].", i)
		if configured.ForEveryTool(g) {
			findings = append(findings, capability.Finding{Key: place + "match", Line: g.Line, Warning: true,
				Message: fmt.Sprintf("%q grants this to every tool, even to those that are added later: name the tools", text.Short(g.Match))})
		}
		var matched []*wasmtools.Tool
		for _, t := range tools {
			if pattern.Match(g.Match, t.Path()) {
				matched = append(matched, t)
			}
		}
		for _, k := range kinds {
			rule := g.Rules[k.Name]
			if rule == nil || k.Review == nil {
				continue
			}
			k.Review(&capability.Review{
				Needs: needsOf(matched, k.Name), All: needsOf(tools, k.Name), State: c.State.Directory != "" || c.State.URL != "", Matches: len(matched) > 0, Nameless: len(c.Auth.Tokens) > 0,
				Report: func(f capability.Finding) {
					f.Key, f.Line, f.Capability = place+f.Key, g.Line, k.Name
					findings = append(findings, f)
				},
			}, rule)
		}
	}
	return findings
}

// needsOf returns what tools need from one capability.
func needsOf(tools []*wasmtools.Tool, name string) (needs []wasmtools.Need) {
	for _, t := range tools {
		if n, ok := t.Needs[name]; ok {
			needs = append(needs, n)
		}
	}
	return needs
}
