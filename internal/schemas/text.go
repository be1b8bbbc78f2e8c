package schemas

import "encoding/base64"

// textRules are the rules for strings.
type textRules struct {
	min, max int // lengths in characters; max is -1 if there is no maximum
	pattern  *pattern
	format   *format
	base64   bool
}

// A format is a format that is checked.
type format struct {
	name   string
	admits func(string) bool
	work   int // work of a match for each byte
	max    int // length in bytes of the longest text that can match
}

// maxFormat is the length of the longest text for most formats, and maxLongFormat for addresses.
const (
	maxFormat     = 1 << 10
	maxLongFormat = 64 << 10
)

// findFormat returns a format, or nil for an unknown one, which is only documentation.
func findFormat(name string) *format {
	admits := formats[name]
	if admits == nil {
		return nil
	}
	f := &format{name: name, admits: admits, work: 1, max: maxFormat}
	switch name {
	case "uri", "iri", "uri-reference", "uriref", "iri-reference", "json-pointer", "relative-json-pointer":
		f.max = maxLongFormat
	case "uri-template":
		f.work, f.max = 8, maxLongFormat
	case "regex":
		f.max = maxPattern
	}
	return f
}

// cost is the cost of a match, in units of run.work.
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
