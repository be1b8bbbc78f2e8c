package core

import (
	"slices"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Holder is something that holds memory or code: a program, or an engine that several programs share, as scripts of one language do.
type Holder struct {
	// Tools are the sorted paths of its tools that are served.
	Tools []string
	// Memory and Code are in bytes.
	Memory, Code, Mappings int64
}

// Holders returns what the tools of a generation hold. It does not include what old versions hold until their calls have ended, or what compiling
// takes.
func Holders(g *wasmtools.Generation) (all []*Holder) {
	type code struct {
		sandbox.Holding
		programs []*Holder
	}
	programs, codes := map[sandbox.ID]*Holder{}, map[sandbox.ID]*code{}
	for _, route := range g.Routes() {
		runs, ok := route.Tool.Caller.(interface{ Holding() sandbox.Holding })
		if !ok {
			continue
		}
		h := runs.Holding()
		p := programs[h.Program]
		if p == nil {
			p = &Holder{Memory: h.Memory, Mappings: h.Mappings}
			programs[h.Program] = p
			all = append(all, p)
			if codes[h.Code] == nil {
				codes[h.Code] = &code{Holding: h}
			}
			codes[h.Code].programs = append(codes[h.Code].programs, p)
		}
		p.Tools = append(p.Tools, route.Path)
	}
	for _, c := range codes {
		of := c.programs[0]
		if len(c.programs) > 1 {
			of = &Holder{}
			for _, p := range c.programs {
				of.Tools = append(of.Tools, p.Tools...)
			}
			slices.Sort(of.Tools)
			all = append(all, of)
		}
		of.Code += c.CodeMemory
		of.Mappings += c.CodeMappings
		of.Memory += c.Base
	}
	return all
}
