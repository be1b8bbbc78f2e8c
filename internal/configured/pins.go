package configured

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/text"
)

// Pins are the pins of a configuration. They never change and are safe for concurrent use. A nil *Pins has no pins.
type Pins struct{ all []pinned }

// A pinned is one match, and the digests that its files may have.
type pinned struct {
	match   string
	digests []string
}

// PinsOf returns the pins of a configuration.
func PinsOf(c *config.Config) *Pins {
	if len(c.Pins) == 0 {
		return nil
	}
	p, places := &Pins{}, map[string]int{}
	for _, one := range c.Pins {
		at, ok := places[one.Match]
		if !ok {
			at = len(p.all)
			places[one.Match] = at
			p.all = append(p.all, pinned{match: one.Match})
		}
		p.all[at].digests = append(p.all[at].digests, one.SHA256)
	}
	return p
}

// Check returns nil if a file with this name in its source, and with tools at these paths, may have this digest, and otherwise an error that says why
// not. Each match for the file must allow the digest.
func (p *Pins) Check(name string, paths []string, digest string) error {
	if p == nil {
		return nil
	}
	for i := range p.all {
		one := &p.all[i]
		if one.isFor(name, paths) && !slices.Contains(one.digests, digest) {
			return fmt.Errorf("%s is pinned to %s, but the file is %s: put the pinned file back, or change the [[pin]]", cmp.Or(one.tool(paths), "it"), one.list(), digest)
		}
	}
	return nil
}

// isFile reports whether a pin's match is the name of a file.
func isFile(match string) bool { return strings.Contains(match, ".") }

func (p *pinned) isFor(name string, paths []string) bool {
	if isFile(p.match) {
		return p.match == name
	}
	return p.tool(paths) != ""
}

// tool returns the first of these paths that is pinned, or "".
func (p *pinned) tool(paths []string) string {
	if isFile(p.match) {
		return ""
	}
	for _, path := range paths {
		if pattern.Match(p.match, path) {
			return path
		}
	}
	return ""
}

func (p *pinned) list() string {
	if len(p.digests) == 1 {
		return p.digests[0]
	}
	var short []string
	for _, d := range p.digests {
		short = append(short, text.ShortDigest(d))
	}
	if len(short) > maxListed {
		short = append(short[:maxListed], fmt.Sprintf("%d more", len(short)-maxListed))
	}
	return "one of " + strings.Join(short, ", ")
}
