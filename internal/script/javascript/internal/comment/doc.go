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
	returned    string // description of what is returned
	internal    bool   // it says that what follows is not for everybody
	err         error  // the first mistake in it
}

var (
	// tag is the beginning of a block: @param and what follows.
	tag = regexp.MustCompile(`^@([A-Za-z]+)[ \t]*`)
	// typedef is the tag of a comment that belongs to no function.
	typedef = regexp.MustCompile(`(?m)^[\s*/]*@(typedef|callback|import)\b`)
	// link is {@link target text} and its like. The text stays, or else the target.
	link = regexp.MustCompile(`\{@link(?:code|plain)?\s+(?:[^}\s|]+[\s|]+)?([^}\s][^}]*)\}`)
)

// blocks returns the text of a comment before its tags, and the text of each tag.
func blocks(whole string) []string {
	var out []string
	var block strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(whole, "/**"), "*/"), "\n") {
		line = strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(line, " \t\r"), "*"), " "), " \t\r")
		if tag.MatchString(line) {
			out = append(out, block.String())
			block.Reset()
		}
		block.WriteString(line + "\n")
	}
	return append(out, block.String())
}

func description(whole string) string { return paragraphs(blocks(whole)[0]) }

// read reads a comment.
func (f *script) read(whole string) doc {
	all := blocks(whole)
	d := doc{description: paragraphs(all[0])}
	for _, b := range all[1:] {
		found := tag.FindStringSubmatch(b)
		rest := b[len(found[0]):]
		var err error
		switch found[1] {
		case "description", "summary":
			d.description = strings.TrimSpace(d.description + "\n\n" + paragraphs(rest))
		case "param":
			d.params, err = f.param(d.params, rest)
		case "returns", "return":
			d.returns, rest, err = f.braces(rest, false)
			d.returned = dashed(rest)
		case "internal", "private", "ignore", "hidden", "protected", "package":
			d.internal = true
		}
		if line, _, _ := strings.Cut(b, "\n"); d.err == nil && err != nil {
			d.err = fmt.Errorf("%.100s: %w", line, err)
		}
	}
	return d
}

// braces reads "{type}" at the beginning of a text, if it is there, and returns what follows.
func (f *script) braces(s string, closed bool) (*schema, string, error) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{") {
		return nil, s, nil
	}
	p := &parser{script: f, tokens: token.All(s), closed: closed}
	if !p.brackets() {
		return nil, "", errors.New("a bracket of the type is not closed")
	}
	last := p.at - 1
	p.at = 1
	out := p.union()
	if p.at != last {
		p.refuse()
	}
	return out, strings.TrimSpace(s[p.tokens[last].At+1:]), p.err
}

// param reads "{type} [name=default] - description". It adds the parameter to others, or to the one that it is a member of: "options.size" to
// "options".
func (f *script) param(all []member, s string) ([]member, error) {
	var m member
	var err error
	if m.schema, s, err = f.braces(s, true); err != nil {
		return all, err
	}
	if m.optional = strings.HasPrefix(s, "["); m.optional {
		p := &parser{tokens: token.All(s)}
		if !p.brackets() {
			return all, errors.New("a bracket of the name is not closed")
		}
		last := p.tokens[p.at-1].At
		name, fallback, _ := strings.Cut(s[1:last], "=")
		m.name, s, fallback = strings.TrimSpace(name), s[last+1:], strings.TrimSpace(fallback)
		m.fallback = literal(token.All(fallback))
		// A text may stand without quotes, as most people write it.
		if m.schema != nil && m.schema.is("string") && fallback != "" && (m.fallback == nil || m.fallback[0] != '"') {
			m.fallback, err = json.Marshal(fallback)
		}
	} else {
		end := strings.IndexAny(s+" ", " \t\n")
		m.name, s = s[:end], s[end:]
	}
	m.description = dashed(s)
	owners := strings.Split(m.name, ".")
	m.name = owners[len(owners)-1]
	into := &all
	for _, owner := range owners[:len(owners)-1] {
		i := slices.IndexFunc(*into, func(o member) bool { return o.name == owner })
		if i < 0 {
			return all, fmt.Errorf("no @param %.40s stands above it: %s", owner, instead)
		}
		into = &(*into)[i].members
	}
	switch {
	case len(*into) == maxNames:
		return all, fmt.Errorf("there are more than %d parameters", maxNames)
	case len(owners) > maxDepth:
		return all, fmt.Errorf("types are nested too deep: %s", instead)
	case slices.ContainsFunc(*into, func(o member) bool { return o.name == m.name }):
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
