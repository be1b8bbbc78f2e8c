package web

import "strings"

// Prefers reports whether the Accept header prefers a media type to JSON: by its name or by its kind ("image/*"), with a higher weight than JSON or
// with the same weight but a more specific name. "*/*" alone means JSON.
func Prefers(accept []string, mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, ";")
	var own, plain preference
	for _, line := range accept {
		for line != "" {
			var element string
			element, line = cutUnquoted(line, ',')
			own.take(element, kind)
			plain.take(element, "application/json")
		}
	}
	if own.detail < ofKind || own.weight == 0 {
		return false
	}
	return own.weight > plain.weight || own.weight == plain.weight && own.detail > plain.detail
}

// These say how specific an element of Accept is.
const (
	ofAll  = iota + 1 // "*/*"
	ofKind            // "image/*"
	ofType            // "image/png"
)

// A preference is what the most specific element of Accept says about a media type.
type preference struct {
	detail int // 0: no element mentions it
	weight int // in thousandths
}

// take applies an element such as "image/*;q=0.8".
func (p *preference) take(element, mediaType string) {
	name, parameters := cutUnquoted(element, ';')
	name = strings.Trim(name, " \t")
	detail := 0
	kind, _, _ := strings.Cut(mediaType, "/")
	switch {
	case strings.EqualFold(name, mediaType):
		detail = ofType
	case len(name) == len(kind)+len("/*") && strings.EqualFold(name[:len(kind)], kind) && name[len(kind):] == "/*":
		detail = ofKind
	case name == "*/*":
		detail = ofAll
	}
	if detail == 0 || detail < p.detail {
		return
	}
	weight := fullWeight
	for parameters != "" {
		var parameter string
		parameter, parameters = cutUnquoted(parameters, ';')
		name, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.Trim(name, " \t"), "q") {
			if weight = thousandths(strings.Trim(value, " \t")); weight < 0 {
				return // an element with an unknown meaning is ignored
			}
		}
	}
	if detail > p.detail || weight > p.weight { // of two equally specific elements, the higher weight applies
		p.detail, p.weight = detail, weight
	}
}

// cutUnquoted cuts s at the first separator that is not within quotes.
func cutUnquoted(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}
