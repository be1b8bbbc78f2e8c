package reach

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Pattern is a set of URLs: those of one origin, or of all subdomains of a name, at or below a path. The zero Pattern is empty.
type Pattern struct {
	origin Origin // the host may begin with "*.", or be "*"
	prefix string // "/" for all paths; else it begins with a slash, and may end in one
}

// ParsePattern reads a pattern, which is a URL without a query:
//
//	https://api.example.com       all paths of the origin
//	https://api.example.com/v2    /v2 and what is below it, but not /v2x
//	https://api.example.com/v2/   what is below /v2/
//	https://*.example.com         all names that end in .example.com, at any depth
//	https://*                     all names and addresses
//	http://10.0.0.7:8080          that port; else the scheme's
//
// Its errors repeat the pattern.
func ParsePattern(s string) (Pattern, error) {
	p, err := parsePattern(s)
	if err != nil {
		return Pattern{}, fmt.Errorf("%.200q is not the address of a service: %s", s, strings.NewReplacer("the URL's", "its", "the URL", "it").Replace(err.Error()))
	}
	return p, nil
}

func parsePattern(s string) (Pattern, error) {
	if len(s) > MaxURL {
		return Pattern{}, fmt.Errorf("the URL has %d bytes; the limit is %d", len(s), MaxURL)
	}
	origin, prefix, err := parseOrigin(s)
	if err != nil {
		return Pattern{}, err
	}
	if base, ok := strings.CutPrefix(origin.Host, "*."); ok && !strings.Contains(base, ".") {
		return Pattern{}, errors.New("a * stands for subdomains of a name that has a dot, as in *.example.com")
	}
	if prefix == "" {
		prefix = "/"
	}
	if i := strings.IndexFunc(prefix, func(c rune) bool { return !strings.ContainsRune(patternChars, c) }); i >= 0 {
		c, _ := utf8.DecodeRuneInString(prefix[i:])
		return Pattern{}, fmt.Errorf("the path of a pattern has no %q: letters, digits and /-._~@:+=, are valid", c)
	}
	if prefix != "/" && strings.Contains(prefix, "//") {
		return Pattern{}, errors.New("the path has two slashes one after the other")
	}
	return Pattern{origin, prefix}, checkPath(prefix)
}

const patternChars = nameChars + "ABCDEFGHIJKLMNOPQRSTUVWXYZ/.~@:+=,"

// String returns the pattern in the form that ParsePattern reads.
func (p Pattern) String() string {
	if p.prefix == "/" {
		return p.origin.String()
	}
	return p.origin.String() + p.prefix
}

// Exact reports whether the pattern names exactly one host.
func (p Pattern) Exact() bool { return !strings.HasPrefix(p.origin.Host, "*") }

// Host returns the host that the pattern names. It may begin with "*.", or be "*".
func (p Pattern) Host() string { return p.origin.Host }

// Match reports whether t is one of the pattern's URLs.
func (p Pattern) Match(t Target) bool {
	return covers(p.origin, t.Origin) && below(p.prefix, t.Path) && (p.prefix == "/" || t.firm)
}

// Within reports whether all URLs of p are also URLs of q.
func (p Pattern) Within(q Pattern) bool {
	return covers(q.origin, p.origin) && below(q.prefix, p.prefix)
}

// Overlaps reports whether the two patterns have a URL in common.
func (p Pattern) Overlaps(q Pattern) bool {
	return (covers(p.origin, q.origin) || covers(q.origin, p.origin)) && (below(p.prefix, q.prefix) || below(q.prefix, p.prefix))
}

// Meet returns the pattern of the URLs that both patterns have, and false if there are none.
func (p Pattern) Meet(q Pattern) (Pattern, bool) {
	if !p.Overlaps(q) {
		return Pattern{}, false
	}
	if covers(p.origin, q.origin) {
		p.origin = q.origin
	}
	if below(p.prefix, q.prefix) {
		p.prefix = q.prefix
	}
	return p, true
}

// covers reports whether all hosts of b are also hosts of a.
func covers(a, b Origin) bool {
	if a.Scheme == "" || a.Scheme != b.Scheme || a.Port != b.Port {
		return false
	}
	if a.Host == b.Host || a.Host == "*" {
		return true
	}
	suffix, ok := strings.CutPrefix(a.Host, "*")
	return ok && b.Host != "*" && len(b.Host) > len(suffix) && strings.HasSuffix(b.Host, suffix)
}

// below reports whether path is prefix, or below it.
func below(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}
