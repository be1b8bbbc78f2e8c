package project

import (
	"errors"
	"fmt"
	"strings"
)

// fill fills in a template with values. A template has {{.Name}} for a value. It has {{if .Name}}, {{if not .Name}}, {{else}} and {{end}} around
// text that depends on whether a value is empty. {{- removes the space before it. This is the part of text/template that the files need. Package
// text/template itself calls methods by name, so a program that imports it keeps every exported method of every type.
func fill(template string, values map[string]string) (string, error) {
	var out strings.Builder
	type block struct{ outside, chosen, inverted bool } // whether the text around the block is used, whether the block's text is, and whether else was seen
	var open []block
	counts := true
	for {
		text, rest, found := strings.Cut(template, "{{")
		if strings.HasPrefix(rest, "-") {
			text, rest = strings.TrimRight(text, " \t\n"), rest[1:]
		}
		if counts {
			out.WriteString(text)
		}
		if !found {
			break
		}
		word, after, found := strings.Cut(rest, "}}")
		if !found {
			return "", errors.New("a template has {{ without }}")
		}
		template, word = after, strings.TrimSpace(word)
		condition, isIf := strings.CutPrefix(word, "if ")
		condition, isNot := strings.CutPrefix(condition, "not ")
		name, isName := strings.CutPrefix(condition, ".")
		value, known := values[name]
		switch {
		case isName && known && isIf:
			b := block{outside: counts, chosen: (value != "") != isNot}
			open, counts = append(open, b), counts && b.chosen
		case isName && known && !isNot:
			if counts {
				out.WriteString(value)
			}
		case word == "else" && len(open) > 0 && !open[len(open)-1].inverted:
			b := &open[len(open)-1]
			b.inverted = true
			counts = b.outside && !b.chosen
		case word == "end" && len(open) > 0:
			counts = open[len(open)-1].outside
			open = open[:len(open)-1]
		default:
			return "", fmt.Errorf("a template has {{%s}}, which nothing fills", word)
		}
	}
	if len(open) > 0 {
		return "", errors.New("a template has {{if}} without {{end}}")
	}
	return out.String(), nil
}
