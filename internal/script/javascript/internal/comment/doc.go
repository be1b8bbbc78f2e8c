package comment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A comment is what stands between /** and */.
type comment struct {
	description string
	params      []parameter
	returns     *schema
	returned    string // description of what is returned
	examples    []string
	internal    bool  // it says that what follows is not for everybody
	err         error // the first mistake in it
}

var (
	// tag is the beginning of a block: @param and what follows.
	tag = regexp.MustCompile(`^@([A-Za-z]+)[ \t]*`)
	// typedef is the tag of a comment that belongs to no function.
	typedef = regexp.MustCompile(`(?m)^[\s*/]*@(typedef|callback|import)\b`)
	// link is {@link target text} and its relatives.
	link = regexp.MustCompile(`\{@link(?:code|plain)?\s+([^}\s|]+)(?:[\s|]+([^}]*))?\}`)
	// result is what an example says that a call returns: // => "Hello".
	result = regexp.MustCompile(`//\s*(?:=>|->|→|returns)?\s*(.*)$`)
)

// blocks returns the text of a comment before its tags, and the text of each tag.
func blocks(doc string) []string {
	var out []string
	var block strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(doc, "/**"), "*/"), "\n") {
		line = strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(line, " \t\r"), "*"), " "), " \t\r")
		if tag.MatchString(line) {
			out = append(out, block.String())
			block.Reset()
		}
		block.WriteString(line + "\n")
	}
	return append(out, block.String())
}

func description(doc string) string { return paragraphs(blocks(doc)[0]) }

// parse reads a comment.
func (f *script) parse(doc string) comment {
	all := blocks(doc)
	c := comment{description: paragraphs(all[0])}
	for _, b := range all[1:] {
		found := tag.FindStringSubmatch(b)
		rest := b[len(found[0]):]
		var err error
		switch found[1] {
		case "description", "desc", "summary":
			c.description = strings.TrimSpace(c.description + "\n\n" + paragraphs(rest))
		case "param", "arg", "argument":
			var p parameter
			if p, err = f.param(rest); err == nil {
				c.params, err = add(c.params, p)
			}
		case "returns", "return":
			if c.returns, _, rest, err = f.braces(rest, false); err != nil {
				err = fmt.Errorf("@returns: %w", err)
			}
			c.returned = dashed(rest)
		case "example":
			c.examples = append(c.examples, rest)
		case "internal", "private", "ignore", "hidden", "protected", "package":
			c.internal = true
		}
		if c.err == nil {
			c.err = err
		}
	}
	return c
}

// braces reads "{type}" at the beginning of a text, if it is there.
func (f *script) braces(s string, closed bool) (_ *schema, optional bool, rest string, err error) {
	s = strings.TrimLeft(s, " \t\n")
	if !strings.HasPrefix(s, "{") {
		return nil, false, s, nil
	}
	r := &types{reader: reader{tokens(s), 0}, script: f, closed: closed}
	r.brackets()
	last := r.at - 1
	if closing := r.tokens[last]; !closing.is("}") || closing.depth > 0 {
		line, _, _ := strings.Cut(s, "\n")
		return nil, false, "", fmt.Errorf("%s: a bracket of the type is not closed", line)
	}
	r.at = 1
	out, optional, err := r.union()
	if err == nil && r.at != last {
		err = r.misread()
	}
	return out, optional, s[r.tokens[last].at+1:], err
}

// param reads "{type} [name=default] - description".
func (f *script) param(s string) (p parameter, err error) {
	var wrong error
	if p.schema, p.optional, s, wrong = f.braces(s, true); s == "" && wrong != nil {
		return p, fmt.Errorf("@param %w", wrong)
	}
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") {
		r := reader{tokens(s), 0}
		r.brackets()
		closing := r.tokens[r.at-1].at
		name, fallback, _ := strings.Cut(s[1:max(1, closing)], "=")
		p.name, p.optional, s = strings.TrimSpace(name), true, s[min(closing+1, len(s)):]
		fallback = strings.TrimSpace(fallback)
		all := tokens(fallback)
		p.fallback, err = literal(all[:len(all)-1])
		// A text may stand without quotes, as most people write it.
		if p.schema != nil && p.schema.is("string") && fallback != "" && (err != nil || p.fallback[0] != '"') {
			p.fallback, _ = json.Marshal(fallback)
		}
	} else {
		end := strings.IndexAny(s+" ", " \t\n")
		p.name, s = s[:end], s[end:]
	}
	p.description = dashed(s)
	if wrong != nil {
		return p, fmt.Errorf("the parameter %s: %w", p.name, wrong)
	}
	return p, nil
}

// add adds a parameter to a list, or to the one that it is a member of: "options.size" to "options".
func add(all []parameter, p parameter) ([]parameter, error) {
	owner, name, nested := strings.Cut(p.name, ".")
	i := slices.IndexFunc(all, func(o parameter) bool { return o.name == owner })
	switch {
	case len(all) == maxNames:
		return all, fmt.Errorf("a comment has more than %d parameters", maxNames)
	case !nested && i >= 0:
		return all, fmt.Errorf("@param %s stands twice", p.name)
	case !nested:
		return append(all, p), nil
	case i < 0 && strings.Contains(p.name, "[]."):
		return all, fmt.Errorf("@param %s is not read: write the type of the list in one, as @param {{name: string}[]} items", p.name)
	case i < 0:
		return all, fmt.Errorf("@param %s: write @param {Object} %s above it", p.name, owner)
	}
	var err error
	p.name = name
	all[i].members, err = add(all[i].members, p)
	return all, err
}

func dashed(text string) string {
	text = strings.TrimSpace(text)
	return paragraphs(strings.TrimPrefix(strings.TrimPrefix(text, "- "), "– "))
}

// paragraphs joins the lines of each paragraph, and writes links as plain text. Lists keep their lines.
func paragraphs(text string) string {
	text = link.ReplaceAllStringFunc(text, func(whole string) string {
		found := link.FindStringSubmatch(whole)
		return cmp.Or(strings.TrimSpace(found[2]), found[1])
	})
	var out strings.Builder
	ended := true
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" && !ended:
			out.WriteString("\n")
		case ended:
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "):
			out.WriteByte('\n')
		default:
			out.WriteByte(' ')
		}
		if out.WriteString(line); line == "" && !ended {
			out.WriteByte('\n')
		}
		ended = line == ""
	}
	return strings.TrimSpace(out.String())
}

// An example is a call with its result, as a manifest has it.
type example struct {
	Arguments any             `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// examples reads calls with literal arguments: greet("Ada", 3) // => "Hello". Anything else is for readers only. Order has the names of the
// parameters, where the function takes them one by one.
func examples(name string, blocks []string, order []string) (out []example) {
	for _, block := range blocks {
		for line := range strings.SplitSeq(block, "\n") {
			line = strings.TrimPrefix(strings.TrimSpace(line), "await ")
			r := reader{tokens(line), 2}
			if !strings.HasPrefix(line, name+"(") || len(r.tokens) < 3 {
				continue
			}
			var values []json.RawMessage
			var wrong error
			for !r.take(")") && r.peek().kind != end && wrong == nil {
				var value json.RawMessage
				value, wrong = literal(r.until(")"))
				values = append(values, value)
				r.take(",")
			}
			closing := r.tokens[r.at-1]
			if r.take(";"); wrong != nil || !closing.is(")") || r.peek().kind != end {
				continue
			}
			named := map[string]json.RawMessage{}
			for i, name := range order[:min(len(order), len(values))] {
				named[name] = values[i]
			}
			e := example{Arguments: named}
			if order == nil && len(values) == 1 && values[0][0] == '{' {
				e.Arguments = values[0]
			} else if len(values) > len(order) {
				continue
			}
			if found := result.FindStringSubmatch(line[closing.at:]); found != nil {
				said := tokens(found[1])
				e.Result, _ = literal(said[:len(said)-1])
			}
			out = append(out, e)
		}
	}
	return out
}
