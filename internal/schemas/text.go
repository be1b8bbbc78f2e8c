package schemas

import "encoding/base64"

// textRules are those for strings.
type textRules struct {
	min, max int // in characters; max is -1 if there is none
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

// maxFormat is the longest text that most formats are looked for in, maxLongFormat the longest for addresses.
const (
	maxFormat     = 1 << 10
	maxLongFormat = 64 << 10
)

// findFormat returns a format, or nil for one that nobody knows: it documents only.
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
