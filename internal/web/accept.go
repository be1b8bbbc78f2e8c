package web

import "strings"

// Prefers reports whether the fields of Accept ask for a media type rather than JSON: by its name or by its kind ("image/*"), and with a higher
// weight than JSON has, or with the same by a name that is more specific. "*/*" alone is content with JSON.
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

// How specific an element of Accept is.
const (
	ofAll  = iota + 1 // "*/*"
	ofKind            // "image/*"
	ofType            // "image/png"
)

// A preference is what the most specific element of Accept says of a media type.
type preference struct {
	detail int // 0: nothing says anything of it
	weight int // in thousandths
}

// take takes up an element such as "image/*;q=0.8".
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
				return // nobody knows what it means
			}
		}
	}
	if detail > p.detail || weight > p.weight { // of two that say the same, the kinder one holds
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
