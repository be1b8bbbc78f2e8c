// Package comment reads what the author of a script says of exported functions beside the code: comments for documentation (JSDoc), with the
// types in them, and TypeScript's annotations. From these come the schemas of tools that have no other. It reads one file.
//
// It knows the types that most authors write; docs/javascript.md lists them. Any other is an error that says what to write, and counts only if
// nothing else says what the function takes: a schema is never a guess.
package comment

import (
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/token"
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
	Parameters *schema `json:"parameters,omitempty"`
	Result     *schema `json:"result,omitempty"`
	// Place is where the export stands, and Error what can't be said as a schema.
	Place Place  `json:"place"`
	Error *Place `json:"error,omitempty"`
}

// A Place is one in the file, perhaps with a message. Lines and columns count from 1. Text is the line, where it is not too long to be shown.
type Place struct {
	Message string `json:"message,omitempty"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Text    string `json:"text,omitempty"`
}

const (
	// maxComments is how many exports are read: a manifest has as many tools.
	maxComments = 1000
	// maxWork is how many bytes of named types are read: each use of a type reads it again.
	maxWork = 1 << 20
	// maxNames is how many members an object may have, or parameters a function.
	maxNames = 1000
	// maxDepth is how deep types may be nested.
	maxDepth = 100
	// maxLine is how long the line of a place may be: each export has its own.
	maxLine = 1000
)

// instead is what an author can do about all that is not read.
const instead = "state a schema instead, as in tool({ parameters: … })"

// Read reads a file. The name is for places.
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
		if fn.doc == "" && !fn.tool || said.internal {
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
