package comment

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/token"
)

// A doc is what stands between /** and */.
type doc struct {
	description string
	params      []member
	returns     *schema
	returned    string // description of the result
	hidden      bool   // the function is not public
	foreign     bool   // it declares a type, and does not describe what follows
	err         error  // the first mistake in it
}

var (
	// margin matches what precedes the text of a line.
	margin = regexp.MustCompile(`(?m)^[ \t\r]*\*? ?`)
	// link matches {@link target text} and similar tags. Such a tag becomes its text or, if it has none, its target.
	link = regexp.MustCompile(`\{@link(?:code|plain)?\s+(?:[^}\s|]+[\s|]+)?([^}\s][^}]*)\}`)
)

// blocks returns the text of a comment before its tags, and that of each tag, without its @.
func blocks(whole string) []string {
	return strings.Split("\n"+margin.ReplaceAllString(strings.TrimSuffix(strings.TrimPrefix(whole, "/**"), "*/"), ""), "\n@")
}

func description(whole string) string { return paragraphs(blocks(whole)[0]) }

// read reads a comment.
func (f *script) read(whole string) doc {
	all := blocks(whole)
	d := doc{description: paragraphs(all[0])}
	for _, b := range all[1:] {
		end := strings.IndexAny(b+" ", " \t\r\n{")
		rest := strings.TrimSpace(b[end:])
		var err error
		switch b[:end] {
		case "description", "summary":
			d.description = strings.TrimSpace(d.description + "\n\n" + paragraphs(rest))
		case "param":
			d.params, err = f.param(d.params, rest)
		case "returns", "return":
			d.returns, rest, err = f.braces(rest, false)
			d.returned = dashed(rest)
		case "internal", "private", "ignore", "hidden", "protected", "package":
			d.hidden = true
		case "typedef", "callback", "import":
			d.foreign = true
		}
		if line, _, _ := strings.Cut(b, "\n"); d.err == nil && err != nil {
			d.err = fmt.Errorf("@%.100s: %w", strings.TrimSpace(line), err)
		}
	}
	return d
}

// enclosed returns what is in the brackets that a text begins with, and what follows them.
func enclosed(s string) (inner, rest string, err error) {
	p := &parser{tokens: token.All(s)}
	if !p.brackets() {
		return "", "", errors.New("a bracket is not closed")
	}
	end := p.tokens[p.at-1].At
	return s[1:end], strings.TrimSpace(s[end+1:]), nil
}

// braces reads "{type}" at the beginning of a text, if it is there, and returns what follows.
func (f *script) braces(s string, closed bool) (*schema, string, error) {
	if !strings.HasPrefix(s, "{") {
		return nil, s, nil
	}
	inner, rest, err := enclosed(s)
	if err != nil {
		return nil, "", err
	}
	p := &parser{script: f, tokens: token.All(inner), closed: closed}
	out := p.union()
	if !p.atEnd() {
		p.refuse()
	}
	return out, rest, p.err
}

// param reads "{type} [name=default] - description". It adds the parameter to the others, or to its parent: "options.size" to "options".
func (f *script) param(all []member, s string) ([]member, error) {
	var m member
	var err error
	if m.schema, s, err = f.braces(s, true); err != nil {
		return all, err
	}
	if m.optional = strings.HasPrefix(s, "["); m.optional {
		var inner string
		if inner, s, err = enclosed(s); err != nil {
			return all, err
		}
		name, fallback, _ := strings.Cut(inner, "=")
		m.name, fallback = strings.TrimSpace(name), strings.TrimSpace(fallback)
		m.fallback = literal(token.All(fallback))
		// The default of a string parameter needs no quotes, since most people write none.
		if m.schema != nil && m.schema.is("string") && fallback != "" && (m.fallback == nil || m.fallback[0] != '"') {
			m.fallback, err = json.Marshal(fallback)
		}
	} else {
		end := strings.IndexAny(s+" ", " \t\n")
		m.name, s = s[:end], s[end:]
	}
	m.description = dashed(s)
	into := &all
	if owner, name, isMember := strings.Cut(m.name, "."); isMember {
		i := slices.IndexFunc(all, func(o member) bool { return o.name == owner })
		if i < 0 {
			return all, fmt.Errorf("no @param %.40s stands above it: %s", owner, instead)
		} else if strings.Contains(name, ".") {
			return all, fmt.Errorf("members of members are not read: %s", instead)
		}
		m.name, into = name, &all[i].members
	}
	if len(*into) == maxNames {
		return all, fmt.Errorf("there are more than %d parameters", maxNames)
	}
	if slices.ContainsFunc(*into, func(o member) bool { return o.name == m.name }) {
		return all, errors.New("the parameter is named twice: name it once")
	}
	*into = append(*into, m)
	return all, err
}

func dashed(text string) string {
	text = strings.TrimSpace(text)
	return paragraphs(strings.TrimPrefix(strings.TrimPrefix(text, "- "), "– "))
}

// paragraphs joins the lines of each paragraph, and writes links as plain text. Lists keep their lines.
func paragraphs(text string) string {
	var out strings.Builder
	before := ""
	for line := range strings.SplitSeq(strings.TrimSpace(link.ReplaceAllString(text, "$1")), "\n") {
		switch line = strings.TrimSpace(line); {
		case line == "" && before == "":
			continue
		case line == "", before == "", strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "):
			out.WriteByte('\n')
		default:
			out.WriteByte(' ')
		}
		out.WriteString(line)
		before = line
	}
	return strings.TrimSpace(out.String())
}
