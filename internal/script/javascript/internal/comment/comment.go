// Package comment reads how the author of a script describes exported functions: documentation comments (JSDoc), with the types in them, and
// TypeScript's annotations. Tools without another schema get theirs from these. It reads one file.
//
// It knows the types that most authors write; docs/javascript.md lists them. Any other type is an error that says what to write, but only if nothing
// else says what the function takes: a schema is never a guess.
package comment

import (
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/token"
)

// A Comment is what a file says about an export.
type Comment struct {
	Export      string   `json:"export"`                // the name of the export
	Name        string   `json:"name,omitempty"`        // the function's own name, if it differs from Export, as in a default export
	Description string   `json:"description,omitempty"` // the text of the comment, without its tags
	Order       []string `json:"order,omitempty"`       // the names of the parameters; if empty, the function takes its arguments as one object
	Parameters  *schema  `json:"parameters,omitempty"`  // nil: nothing says it
	Result      *schema  `json:"result,omitempty"`      // nil: nothing says it
	Place       Place    `json:"place"`                 // where the export stands
	Error       *Place   `json:"error,omitempty"`       // what can't become a schema
}

// A Place is a place in the file, perhaps with a message. Lines and columns count from 1. Text is the line, if it is not too long to be shown.
type Place struct {
	Message string `json:"message,omitempty"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Text    string `json:"text,omitempty"`
}

const (
	maxComments = 1000    // exports that are read: a manifest has at most as many tools
	maxWork     = 1 << 20 // bytes of named types: each use of a type reads it again
	maxNames    = 1000    // members of an object, or parameters of a function
	maxDepth    = 100     // types within types
	maxLine     = 1000    // bytes of a place's line: there is a place for each export
)

// instead is what an author can do about anything that is not supported.
const instead = "state a schema instead, as in tool({ parameters: … })"

// Read reads a file. name is the file's name in places.
func Read(name, source string) []Comment {
	f := &script{tokens: token.All(source), types: map[string]*declaration{}, functions: map[string]*function{}}
	for p := (&parser{script: f, tokens: f.tokens}); !p.atEnd(); {
		p.statement()
	}
	var out []Comment
	for _, e := range f.exports {
		fn := f.functions[e.local]
		if fn == nil || len(out) == maxComments {
			continue
		}
		said := f.read(fn.doc)
		if said.hidden || !fn.tool && (fn.doc == "" || said.foreign) {
			continue
		}
		c := Comment{Export: e.name, Description: said.description, Place: place(name, source, fn.name.At)}
		if e.name == "default" {
			c.Name = fn.name.Text
		}
		if err := f.describe(&c, fn, said); err != nil {
			at := c.Place
			at.Message = err.Error()
			c.Error = &at
		}
		out = append(out, c)
	}
	return out
}

// place returns where a byte of a source stands.
func place(name, source string, at int) Place {
	begin := strings.LastIndexByte(source[:at], '\n') + 1
	text, _, _ := strings.Cut(source[begin:], "\n")
	if len(text) > maxLine {
		text = ""
	}
	return Place{File: name, Line: 1 + strings.Count(source[:at], "\n"), Column: 1 + utf8.RuneCountInString(source[begin:at]), Text: strings.TrimRight(text, "\r")}
}
