package comment

import (
	"regexp"
	"strings"
)

// result is what an example says that a call returns: // => "Hello".
var result = regexp.MustCompile(`//\s*(?:=>|->|→|returns)?\s*(.*)$`)

// examples reads calls with literal arguments: greet("Ada", 3) // "Hello". What is anything else is for readers only.
func examples(name string, blocks []string, order []string) []any {
	var out []any
	for _, block := range blocks {
		for line := range strings.SplitSeq(block, "\n") {
			line = strings.TrimPrefix(strings.TrimSpace(line), "await ")
			if !strings.HasPrefix(line, name+"(") {
				continue
			}
			all := tokens(line)
			closing := 0
			for i, t := range all {
				if t.is(")") && t.depth == 0 && closing == 0 {
					closing = i
				}
			}
			if closing < 2 || all[closing+1].kind != end && !all[closing+1].is(";") {
				continue
			}
			arguments, ok := argumentsOf(all[2:closing], order)
			if !ok {
				continue
			}
			example := object{{"arguments", arguments}}
			if found := result.FindStringSubmatch(line[all[closing].at:]); found != nil {
				said := tokens(found[1])
				if value, err := literal(said[:len(said)-1]); err == nil {
					example = example.with("result", value)
				}
			}
			out = append(out, example)
		}
	}
	return out
}

// argumentsOf names the arguments of a call: by the order of the parameters, or as the one object that the function takes.
func argumentsOf(tokens []token, order []string) (any, bool) {
	parts := split(tokens)
	if order == nil {
		if len(parts) == 0 {
			return object{}, true
		}
		value, err := literal(parts[0])
		_, isObject := value.(map[string]any)
		return value, err == nil && isObject && len(parts) == 1
	}
	out := object{}
	for i, part := range parts {
		value, err := literal(part)
		if err != nil || i >= len(order) {
			return nil, false
		}
		out = out.with(order[i], value)
	}
	return out, true
}
