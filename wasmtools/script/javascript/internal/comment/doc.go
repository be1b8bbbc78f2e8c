package comment

import (
	"fmt"
	"regexp"
	"strings"
)

// A comment is what stands between /** and */.
type comment struct {
	description string
	params      []parameter
	returns     []token
	returned    string // description of what is returned
	examples    []string
	internal    bool // it says that what follows is not for everybody
	// typedefs are the types that it defines.
	typedefs map[string]definition
}

// tag is the beginning of a block: @param and what follows.
var tag = regexp.MustCompile(`^@([A-Za-z]+)[ \t]*`)

// link is {@link target text} and its relatives.
var link = regexp.MustCompile(`\{@link(?:code|plain)?\s+([^}\s|]+)(?:[\s|]+([^}]*))?\}`)

// parse reads a comment.
func parse(whole string) comment {
	c := comment{typedefs: map[string]definition{}}
	var blocks []string
	block := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(whole, "/**"), "*/"), "\n") {
		line = strings.TrimLeft(line, " \t\r")
		line = strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(line, "*"), " "), " \t\r")
		if tag.MatchString(line) {
			blocks = append(blocks, block)
			block = ""
		}
		block += line + "\n"
	}
	blocks = append(blocks, block)
	c.description = paragraphs(blocks[0])
	name := "" // of the type that properties belong to
	for _, b := range blocks[1:] {
		found := tag.FindStringSubmatch(b)
		rest := b[len(found[0]):]
		switch found[1] {
		case "description", "desc", "summary":
			c.description = strings.TrimSpace(c.description + "\n\n" + paragraphs(rest))
		case "param", "arg", "argument":
			c.params = add(c.params, readParameter(rest))
		case "returns", "return":
			c.returns, rest = braces(rest)
			c.returned = paragraphs(strings.TrimPrefix(strings.TrimSpace(rest), "- "))
		case "example":
			c.examples = append(c.examples, rest)
		case "internal", "private", "ignore", "hidden", "protected", "package":
			c.internal = true
		case "typedef":
			written, after := braces(rest)
			words := strings.Fields(after)
			if len(words) == 0 {
				continue
			}
			name = words[0]
			_, said, _ := strings.Cut(after, name)
			d := definition{written: written, description: paragraphs(strings.TrimPrefix(strings.TrimSpace(said), "- "))}
			if d.description == "" {
				d.description = c.description
			}
			if plain := source(written); plain == "" || plain == "object" || plain == "Object" {
				d.members = []parameter{}
			}
			c.typedefs[name] = d
		case "property", "prop":
			if d, ok := c.typedefs[name]; ok && d.members != nil {
				d.members = add(d.members, readParameter(rest))
				c.typedefs[name] = d
			}
		}
	}
	for name, d := range c.typedefs {
		if d.members != nil && len(d.members) == 0 {
			d.members = nil // an object of anything
			if len(d.written) == 0 {
				d.written, _ = typeTokens("object")
			}
			c.typedefs[name] = d
		}
	}
	return c
}

// paragraphs joins the lines of each paragraph, and writes links as plain text. Lists keep their lines.
func paragraphs(text string) string {
	text = link.ReplaceAllStringFunc(text, func(whole string) string {
		found := link.FindStringSubmatch(whole)
		if said := strings.TrimSpace(found[2]); said != "" {
			return said
		}
		return found[1]
	})
	var out strings.Builder
	ended := true
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		trimmed := strings.TrimSpace(line)
		item := strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* ")
		switch {
		case trimmed == "" && !ended:
			out.WriteString("\n\n")
			ended = true
			continue
		case item && !ended:
			out.WriteByte('\n')
		case !ended:
			out.WriteByte(' ')
		}
		if trimmed != "" {
			out.WriteString(trimmed)
			ended = false
		}
	}
	return strings.TrimSpace(out.String())
}

// braces reads "{type}" at the beginning of a text.
func braces(s string) (inner []token, rest string) {
	s = strings.TrimLeft(s, " \t\n")
	if !strings.HasPrefix(s, "{") {
		return nil, s
	}
	all := tokens(s)
	for i, t := range all {
		if t.is("}") && t.depth == 0 && i > 0 {
			return all[1:i], s[t.at+1:]
		}
	}
	return nil, s
}

func typeTokens(s string) ([]token, string) { return braces("{" + s + "}") }

// readParameter reads "{type} [name=default] - description".
func readParameter(s string) parameter {
	var p parameter
	p.written, s = braces(s)
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "{") {
		line, _, _ := strings.Cut(s, "\n")
		p.wrong = fmt.Sprintf("@param %s: a bracket of the type is not closed", line)
	} else if strings.HasPrefix(s, "[") {
		inner, rest := bracketed(s)
		name, fallback, has := strings.Cut(inner, "=")
		p.name, p.optional = strings.TrimSpace(name), true
		if fallback = strings.TrimSpace(fallback); has && fallback != "" {
			p.fallback, p.hasDefault = fallbackOf(fallback, source(p.written))
		}
		s = rest
	} else {
		end := strings.IndexAny(s, " \t\n")
		if end < 0 {
			end = len(s)
		}
		p.name, s = s[:end], s[end:]
	}
	s = strings.TrimSpace(s)
	p.description = paragraphs(strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(s, "- "), "– ")))
	return p
}

// bracketed reads "[…]" at the beginning of a text, with the brackets in it.
func bracketed(s string) (inner, rest string) {
	all := tokens(s)
	for i, t := range all {
		if t.is("]") && t.depth == 0 && i > 0 {
			return s[1:t.at], s[t.at+1:]
		}
	}
	return strings.TrimPrefix(s, "["), ""
}

// fallbackOf reads a default. A text may stand without quotes, as most people write it.
func fallbackOf(s, kind string) (any, bool) {
	all := tokens(s)
	value, err := literal(all[:len(all)-1])
	if _, isText := value.(string); kind == "string" && (err != nil || !isText) {
		return strings.Trim(s, `"'`), true
	}
	return value, err == nil
}

// add adds a parameter to a list, or to the one that it is a member of: "options.size" to "options".
func add(all []parameter, p parameter) []parameter {
	owner, name, nested := strings.Cut(p.name, ".")
	if !nested {
		return append(all, p)
	}
	owner = strings.TrimSuffix(owner, "[]")
	for i := range all {
		if all[i].name == owner {
			p.name = name
			all[i].members = add(all[i].members, p)
			return all
		}
	}
	return append(all, p)
}
