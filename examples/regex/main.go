// Command regex is a module of tools that search texts with regular expressions.
package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// A search has the arguments that all tools here take. Its options are the flags that other languages write after a pattern.
type search struct {
	Pattern    string `json:"pattern" minLength:"1" maxLength:"2000" description:"A regular expression in RE2's syntax, (?P<name>…) and (?<name>…) for groups. It has no lookaround and no backreferences." examples:"(?P<year>\\d{4})-(?P<month>\\d{2})"`
	Text       string `json:"text" description:"The text to search."`
	IgnoreCase bool   `json:"ignore_case" default:"false"`
	Multiline  bool   `json:"multiline" default:"false" description:"Whether ^ and $ match at each line, too."`
	DotAll     bool   `json:"dot_all" default:"false" description:"Whether . matches line ends, too."`
}

type extraction struct {
	search
	Limit int `json:"limit" default:"100" minimum:"1" maximum:"10000" description:"How many matches to return at most."`
}

type replacement struct {
	search
	Replacement string `json:"replacement" maxLength:"100000" description:"What replaces each match: $1 or ${name} is a group, $$ a dollar sign."`
	Literal     bool   `json:"literal" default:"false" description:"Whether $ means itself."`
}

type found struct {
	Matches []match `json:"matches"`
	More    bool    `json:"more" description:"Whether there are more matches than the limit lets through."`
}

type match struct {
	Text   string             `json:"text"`
	Start  int                `json:"start" description:"Its place in characters (code points), from 0."`
	End    int                `json:"end"`
	Line   int                `json:"line" description:"The line where it begins, from 1."`
	Groups map[string]*string `json:"groups" description:"By name, or by number where they have none; null for a group that took no part."`
}

type replaced struct {
	Text  string `json:"text"`
	Count int    `json:"count" description:"How many matches were replaced."`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "regex",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("extract", "Find all matches of a regular expression (RE2) in a text, with their places and groups.", extract,
			toolsrv.Example{
				Arguments: `{"pattern": "(?P<user>\\w+)@(?P<host>[\\w.]+)", "text": "Write to ada@example.com."}`,
				Result:    `{"matches": [{"text": "ada@example.com.", "start": 9, "end": 25, "line": 1, "groups": {"user": "ada", "host": "example.com."}}], "more": false}`,
			},
			toolsrv.Example{Arguments: `{"pattern": "^b", "text": "abc"}`, Result: `{"matches": [], "more": false}`},
		).With(toolsrv.Options{Title: "Find matches of a pattern", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
		toolsrv.Func("replace", "Replace all matches of a regular expression (RE2) in a text.", replace,
			toolsrv.Example{
				Arguments: `{"pattern": "(\\d+)-(\\d+)", "text": "10-20, 30-40", "replacement": "${2}–${1}"}`,
				Result:    `{"text": "20–10, 40–30", "count": 2}`,
			},
		).With(toolsrv.Options{Title: "Replace matches of a pattern", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

// This makes package regexp build its tables when the module starts; otherwise each call would build them.
var _, _ = extract(nil, extraction{search{Pattern: `(?P<a>\w+)[^b]{1,2}`, Text: "a c", IgnoreCase: true}, 1})

// maxOutput limits a result in bytes; its JSON may be twice as long, and the server accepts 4 MiB.
const maxOutput = 1500 << 10

func extract(_ *toolsrv.Call, in extraction) (found, error) {
	re, err := in.compile()
	if err != nil {
		return found{}, err
	}
	out := found{}
	place := &place{text: in.Text, line: 1}
	size := 0
	for i, at := range re.FindAllStringSubmatchIndex(in.Text, in.Limit+1) {
		if i == in.Limit {
			out.More = true
			break
		}
		m := match{Text: in.Text[at[0]:at[1]], Groups: map[string]*string{}}
		m.Start, m.Line = place.of(at[0])
		m.End = m.Start + utf8.RuneCountInString(m.Text)
		size += len(m.Text) + 100
		for i, name := range re.SubexpNames()[1:] {
			if name == "" {
				name = strconv.Itoa(i + 1)
			}
			if begin, end := at[2*i+2], at[2*i+3]; begin >= 0 {
				group := in.Text[begin:end]
				m.Groups[name] = &group
				size += len(group)
			} else if _, known := m.Groups[name]; !known { // two groups may share a name
				m.Groups[name] = nil
			}
			size += len(name) + 10
		}
		if size > maxOutput {
			return found{}, tooLarge("pass a smaller limit, or a pattern that matches less")
		}
		out.Matches = append(out.Matches, m)
	}
	return out, nil
}

// A place finds the character and the line of a byte. It must be asked for bytes in ascending order.
type place struct {
	text              string
	byte, runes, line int
}

// of returns the number of the character and of the line at a byte.
func (p *place) of(at int) (character, line int) {
	passed := p.text[p.byte:at]
	p.byte = at
	p.runes += utf8.RuneCountInString(passed)
	p.line += strings.Count(passed, "\n")
	return p.runes, p.line
}

func replace(_ *toolsrv.Call, in replacement) (replaced, error) {
	re, err := in.compile()
	if err != nil {
		return replaced{}, err
	}
	references := 0
	if !in.Literal {
		if references, err = checkReferences(re, in.Replacement); err != nil {
			return replaced{}, err
		}
	}
	if references > 0 {
		return expand(re, in, references)
	}
	constant := in.Replacement
	if !in.Literal {
		constant = strings.ReplaceAll(constant, "$$", "$")
	}
	n, size := 0, len(in.Text)
	text := re.ReplaceAllStringFunc(in.Text, func(match string) string {
		n++
		if size += len(constant) - len(match); size > maxOutput {
			return ""
		}
		return constant
	})
	if size > maxOutput {
		return replaced{}, tooLarge("replace less at a time")
	}
	return replaced{text, n}, nil
}

// expand replaces matches with a text that may refer to their groups.
func expand(re *regexp.Regexp, in replacement, references int) (replaced, error) {
	n := 0
	re.ReplaceAllStringFunc(in.Text, func(string) string { n++; return "" })
	const most = 8 << 20 // the most bytes of text that are held for a moment
	text := ""
	if n*len(in.Replacement)+references*len(in.Text) <= most {
		text = re.ReplaceAllString(in.Text, in.Replacement)
	}
	if n*len(in.Replacement)+references*len(in.Text) > most || len(text) > maxOutput {
		return replaced{}, tooLarge("replace less at a time")
	}
	return replaced{text, n}, nil
}

// reference matches $$, ${name} and $name.
var reference = regexp.MustCompile(`\$(?:\$|\{(\w+)\}|(\w+))`)

// checkReferences returns how many groups a replacement refers to, or an error for a group that the pattern does not have: Go would replace it with
// nothing.
func checkReferences(re *regexp.Regexp, replacement string) (int, error) {
	n := 0
	for _, m := range reference.FindAllStringSubmatch(replacement, -1) {
		name := m[1] + m[2]
		if name == "" {
			continue
		}
		n++
		number, err := strconv.Atoi(name)
		if err == nil && number <= re.NumSubexp() || err != nil && re.SubexpIndex(name) >= 0 {
			continue
		}
		message := fmt.Sprintf("The replacement refers to %.100s, and the pattern has no such group.", m[0])
		if m[2] != "" {
			message += " A name includes all letters, digits and _ that follow: write ${1}x for group 1 and an x. For a dollar sign write $$, or pass \"literal\": true."
		}
		return 0, &toolsrv.Error{Code: "no_such_group", Message: message}
	}
	return n, nil
}

func tooLarge(remedy string) error {
	return &toolsrv.Error{Code: "result_too_large", Message: fmt.Sprintf("The result is larger than %d KiB: %s.", maxOutput>>10, remedy)}
}
