package schemas

import (
	"encoding/base64"
	"net/netip"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// textRules are those for strings.
type textRules struct {
	min, max int // in characters; max is -1 where there is none
	pattern  *pattern
	format   *format
	base64   bool
}

// A format is one that is asserted.
type format struct {
	name   string
	admits func(string) bool
	work   int // of a match, for each byte
	max    int // the longest text in bytes that is looked at; a longer one doesn't have the format
}

// maxFormat is the longest text that most formats are looked for in, maxLongFormat the longest for addresses. The library's
// check of some takes quadratic time.
const (
	maxFormat     = 1 << 10
	maxLongFormat = 64 << 10
)

// uriTemplate is RFC 6570's grammar.
var uriTemplate = regexp.MustCompile(`^(?:[^\x00-\x20\x7f"%<>\\^\x60{|}]|%[0-9A-Fa-f]{2}|\{[+#./;?&=,!@|]?` +
	`(?:[\w.]|%[0-9A-Fa-f]{2})+(?:\*|:[1-9]\d{0,3})?(?:,(?:[\w.]|%[0-9A-Fa-f]{2})+(?:\*|:[1-9]\d{0,3})?)*\})*$`)

// findFormat returns a format, or nil for one that nobody knows: it documents only.
func findFormat(name string) *format {
	library, ok := jsonschema.Formats[name]
	if !ok {
		return nil
	}
	f := &format{name: name, admits: func(s string) bool { return library(s) }, work: 1, max: maxFormat}
	switch name {
	case "uri", "iri", "uri-reference", "uriref", "iri-reference", "json-pointer", "relative-json-pointer":
		f.max = maxLongFormat
	case "uri-template": // the library refuses most operators
		f.admits, f.work, f.max = uriTemplate.MatchString, 8, maxLongFormat
	case "ipv4", "ip-address": // the library admits signs
		f.admits = isIPv4
	case "regex": // the library compiles it, which takes memory without end
		f.admits, f.max = isPattern, maxPattern
	}
	return f
}

func isIPv4(s string) bool {
	address, err := netip.ParseAddr(s)
	return err == nil && address.Is4()
}

func isPattern(s string) bool {
	_, err := syntax.Parse(fromECMA(s), syntax.Perl)
	return err == nil
}

// cost is what a match takes, in units of run.work.
func (f *format) cost(s string) int {
	if f.name == "regex" && len(s) <= f.max {
		return parsing(fromECMA(s))
	}
	return f.work * min(len(s), f.max)
}

// match reports whether s has the format.
func (f *format) match(s string) bool { return len(s) <= f.max && f.admits(s) }

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil
}
