package origin

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Patterns match the hosts of a service. The zero value matches none.
type Patterns struct {
	every    bool
	names    map[string]struct{}
	suffixes map[string]struct{} // "example.com" of "*.example.com"
}

// NewPatterns returns Patterns from patterns that CheckPattern accepts.
func NewPatterns(all []string) (Patterns, error) {
	p := Patterns{names: map[string]struct{}{}, suffixes: map[string]struct{}{}}
	for _, s := range all {
		s, err := CheckPattern(s)
		if err != nil {
			return Patterns{}, err
		}
		if suffix, ok := strings.CutPrefix(s, "*."); ok {
			p.suffixes[suffix] = struct{}{}
		} else if s == "*" {
			p.every = true
		} else {
			p.names[s] = struct{}{}
		}
	}
	return p, nil
}

// Every reports whether one of the patterns is "*", which matches every value of the header, even one that is not a host.
func (p Patterns) Every() bool { return p.every }

// Match reports whether one of the patterns matches a host.
func (p Patterns) Match(h Host) bool {
	if _, ok := p.names[h.Name]; ok || p.every {
		return true
	}
	if len(p.suffixes) == 0 {
		return false
	}
	for rest := h.Name; ; {
		_, after, found := strings.Cut(rest, ".")
		if !found {
			return false
		}
		if _, ok := p.suffixes[after]; ok {
			return true
		}
		rest = after
	}
}

// CheckPattern returns a pattern of hosts in the form that is compared, or what is wrong with it. A pattern is a name, an IP
// address, "*.example.com" for every name below example.com, or "*".
func CheckPattern(s string) (string, error) {
	if s == "*" {
		return s, nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return a.Unmap().String(), nil
	}
	name, below := strings.CutPrefix(s, "*.")
	h, ok := ParseHost(name)
	_, err := netip.ParseAddr(h.Name)
	isIP := err == nil
	switch {
	case s == "":
		return "", errors.New(`the entry is empty: name a host such as "tools.example.com"`)
	case strings.Contains(s, "://"):
		return "", fmt.Errorf(`%q has a scheme, but a host has none: leave it out, as in "tools.example.com"`, text.Short(s))
	case strings.Contains(name, "*"), below && isIP:
		return "", fmt.Errorf(`%q has a * that is not the whole first label of a name: use a pattern such as "*.example.com", or "*" for every host`, text.Short(s))
	case strings.ContainsFunc(s, func(r rune) bool { return r > '~' }):
		return "", fmt.Errorf(`%q is not in ASCII: write it as browsers send it, such as "xn--bcher-kva.example"`, text.Short(s))
	case h.Port != 0:
		return "", fmt.Errorf("%q has a port, but a host is allowed on any port: leave it out", text.Short(s))
	case !ok:
		return "", fmt.Errorf(`%q is not a host: use a name, a pattern or an address such as "tools.example.com", "*.example.com" or "10.0.0.5"`, text.Short(s))
	case below:
		return "*." + h.Name, nil
	}
	return h.Name, nil
}

// CheckOrigin returns an origin of web pages in the form that is compared, or what is wrong with it. "*" is every origin.
func CheckOrigin(s string) (string, error) {
	if s == "*" {
		return s, nil
	}
	o, ok := ParseOrigin(s)
	switch {
	case s == "":
		return "", errors.New(`the entry is empty: name an origin such as "https://app.example.com"`)
	case s == "null":
		return "", errors.New(`"null" is the origin of every page without one: name the pages' real origin`)
	case ok:
		return o.String(), nil
	case strings.Contains(s, "*"):
		return "", fmt.Errorf(`%q has a *, but origins are compared as a whole: list each of them, or use just "*" for every origin`, text.Short(s))
	}
	return "", fmt.Errorf(`%q is not an origin: use a scheme and a host without a path, such as "https://app.example.com" or "http://localhost:3000"`, text.Short(s))
}
