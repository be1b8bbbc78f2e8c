// Package comment reads what the author of a script says of exported functions beside the code: comments for documentation (JSDoc), with the
// types in them, and TypeScript's annotations. From these come the schemas of tools that have no other. It reads one file, and no types of others.
//
// A type is read as TypeScript writes it, as far as it describes JSON. What it can't say as JSON Schema is an error, which counts only if
// nothing else says what the function takes.
package comment

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Comment is what a file says of an export.
type Comment struct {
	// Export is the name of the export, and Name what the function is called where that is another: for a default export.
	Export string `json:"export"`
	Name   string `json:"name,omitempty"`
	// Description is the text of the comment, without its tags.
	Description string `json:"description,omitempty"`
	// Order has the names of the parameters of a function that takes them one by one. Without it, the function takes the arguments as one object.
	Order []string `json:"order,omitempty"`
	// Parameters and Result are JSON Schemas; either may be missing.
	Parameters any `json:"parameters,omitempty"`
	Result     any `json:"result,omitempty"`
	// Examples are calls with their results, as a manifest has them.
	Examples []any `json:"examples,omitempty"`
	// Place is where the export stands, and Error what can't be said as a schema.
	Place Place  `json:"place"`
	Error *Place `json:"error,omitempty"`
}

// A Place is one in the file, perhaps with a message. Lines and columns count from 1.
type Place struct {
	Message string `json:"message,omitempty"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Text    string `json:"text"`
}

// Read reads a file. The name is for places.
func Read(name, source string) []Comment {
	all := tokens(source)
	f := &file{name: name, source: source, tokens: all, types: types{}, functions: map[string]*function{}}
	f.read()
	var out []Comment
	for _, export := range f.exports {
		if len(out) == maxComments {
			break
		}
		if fn := f.functions[export.local]; fn != nil {
			if c, ok := f.comment(export.name, fn); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

const (
	// maxComments is how many exports are read: a manifest has as many tools.
	maxComments = 1000
	// maxWork is how many tokens of types are read: a type may be used more than once.
	maxWork = 1 << 17
	// maxNames is how many members an object may have, and how many types a schema may name.
	maxNames = 1000
)

// A file is one that is read.
type file struct {
	name, source string
	tokens       []token
	at           int
	types        types
	functions    map[string]*function // by their names in the file
	exports      []export
	work         int // tokens of types that were read
}

type export struct{ name, local string }

// A function is one at the top of a file, or what tool is called with.
type function struct {
	name    token
	comment *comment
	params  []declared
	returns []token
	tool    bool // the arguments are one object, whatever the parameters look like
}

// comment makes a Comment of a function, if there is anything to say.
func (f *file) comment(name string, fn *function) (Comment, bool) {
	if fn.comment == nil && !fn.tool || fn.comment != nil && fn.comment.internal {
		return Comment{}, false
	}
	c := Comment{Export: name, Place: f.place(fn.name.at)}
	if name == "default" {
		c.Name = fn.name.text
	}
	said := comment{}
	if fn.comment != nil {
		said = *fn.comment
	}
	c.Description = said.description
	schema, order, err := f.parameters(fn, said)
	if err == nil && schema != nil {
		c.Parameters, c.Order = schema, order
	}
	if err == nil {
		c.Result, err = f.result(fn, said)
	}
	if err != nil {
		place := c.Place
		place.Message = err.Error()
		c.Error = &place
	}
	c.Examples = examples(fn.name.text, said.examples, order)
	return c, true
}

// place returns where a byte of the file stands.
func (f *file) place(at int) Place {
	line := 1 + strings.Count(f.source[:at], "\n")
	begin := strings.LastIndexByte(f.source[:at], '\n') + 1
	text, _, _ := strings.Cut(f.source[begin:], "\n")
	return Place{File: f.name, Line: line, Column: 1 + utf8.RuneCountInString(f.source[begin:at]), Text: strings.TrimRight(text, "\r")}
}

// result returns the schema of what a function returns, or nil where nothing is said. Annotations are for the compiler as well, so one that JSON
// Schema can't express is no mistake.
func (f *file) result(fn *function, said comment) (any, error) {
	written := said.returns
	if len(written) == 0 {
		written = fn.returns
	}
	if len(written) == 0 {
		return nil, nil
	}
	r := &reader{file: f}
	schema, _, err := r.schemaOf(written)
	if err != nil {
		if len(said.returns) == 0 {
			return nil, nil
		}
		return nil, fmt.Errorf("@returns: %w", err)
	}
	if schema.get("type") == "null" {
		return nil, nil // nothing
	}
	return r.whole(described(schema, said.returned))
}

// reference finds the named types that a schema refers to.
var reference = regexp.MustCompile(`"\$ref":"#/\$defs/([^"]+)"`)

// whole adds to a schema the named types that it refers to, directly or through others.
func (r *reader) whole(schema object) (object, error) {
	used := map[string]bool{}
	for queue := []any{schema}; len(queue) > 0; queue = queue[1:] {
		text, err := json.Marshal(queue[0])
		if err != nil {
			return nil, err
		}
		for _, found := range reference.FindAllSubmatch(text, -1) {
			if name := string(found[1]); !used[name] {
				used[name] = true
				queue = append(queue, r.defs.get(name))
			}
		}
	}
	var defs object
	for _, d := range r.defs {
		if used[d.name] {
			defs = append(defs, d)
		}
	}
	if len(defs) > 0 {
		schema = schema.with("$defs", defs)
	}
	return schema, nil
}
