package comment

import (
	"cmp"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/token"
)

// A script is the file that is read.
type script struct {
	tokens    []token.Token
	types     map[string]*declaration
	functions map[string]*function // by their names in the file
	exports   []export
	work      int // bytes of named types that were read
}

type export struct{ name, local string }

// A function is one at the top level of a file, or the argument of tool(…).
type function struct {
	name   token.Token
	doc    string // the comment above it
	tool   bool   // it is an argument of tool(…), so its arguments are one object
	params int    // where its parameters begin, or 0 if none can be read
	wrong  string // why it can't be read
}

// A declaration is a type that has a name.
type declaration struct {
	doc        string
	begin, end int    // tokens
	wrong      string // why it can't be read
}

// statement reads a statement at the top level of the file, and notes functions, types and exports.
func (p *parser) statement() {
	for !p.atEnd() && p.peek().Depth > 0 { // nothing in brackets is at the top level
		p.at++
	}
	fn := &function{doc: p.peek().Doc}
	exported := p.take("export")
	byDefault := exported && p.take("default")
	switch t := p.peek(); {
	case t.Is("{") && exported:
		p.list()
	case t.Is("async") || t.Is("function") || t.Is("tool") && byDefault:
		if p.function(fn) {
			p.script.note(fn, exported, byDefault)
		} else {
			p.next()
		}
	case t.Is("const") || t.Is("let") || t.Is("var"):
		p.next()
		for fn.name = p.next(); !p.peek().Is("=") && !p.ended(); { // its type
			p.at++
		}
		if fn.name.Kind == token.Word && p.take("=") && p.function(fn) {
			p.script.note(fn, exported, false)
		}
	case t.Is("interface") || t.Is("type"):
		p.declaration(fn.doc)
	default:
		if p.next(); byDefault && t.Kind == token.Word {
			p.script.exports = append(p.script.exports, export{"default", t.Text})
		}
	}
}

// ended reports whether a statement at the top level ends before the next token.
func (p *parser) ended() bool {
	t := p.peek()
	return p.atEnd() || t.Depth == 0 && (t.Is(";") || token.Parted(p.tokens[p.at-1], t))
}

// list reads { a, b as c }. Names from other files are skipped.
func (p *parser) list() {
	var all []export
	for p.next(); !p.take("}") && !p.atEnd(); p.take(",") {
		e := export{local: p.next().Text}
		if e.name = e.local; p.take("as") {
			e.name = p.next().Text
		}
		all = append(all, e)
	}
	if !p.peek().Is("from") {
		p.script.exports = append(p.script.exports, all...)
	}
}

// note notes a function by its name.
func (f *script) note(fn *function, exported, byDefault bool) {
	e := export{fn.name.Text, fn.name.Text}
	if byDefault {
		e.name = "default"
	}
	if before := f.functions[e.local]; before != nil {
		before.doc, before.wrong = cmp.Or(before.doc, fn.doc), "a function with several signatures is not supported: "+instead
	} else if fn.name.Kind == token.Word {
		if f.functions[e.local] = fn; exported {
			f.exports = append(f.exports, e)
		}
	}
}

// function reads a function up to its parameters, or the argument of tool(…). It reports whether there is either.
func (p *parser) function(fn *function) bool {
	isAsync := p.take("async")
	following := p.following()
	if !isAsync && p.peek().Is("tool") && following.Is("(") && !fn.tool {
		if fn.tool = true; fn.name.Kind != token.Word {
			fn.name = p.peek()
		}
		p.at += 2
		p.argument(fn)
		return true
	}
	switch t := p.peek(); {
	case p.take("function"):
		if p.take("*"); p.peek().Kind == token.Word {
			if name := p.next(); fn.name.Kind != token.Word {
				fn.name = name
			}
		}
	case t.Is("("), t.Is("<"), t.Kind == token.Word && following.Is("=>"):
	default:
		return false
	}
	if p.peek().Is("<") {
		fn.wrong = "a function with type parameters is not supported: " + instead
	}
	fn.params = p.at
	return true
}

// argument reads the argument of tool(…): a function, or an object whose member run is a function.
func (p *parser) argument(fn *function) {
	if !p.peek().Is("{") {
		p.function(fn)
		return
	}
	for depth := p.next().Depth + 1; !p.atEnd() && p.peek().Depth >= depth; {
		before := p.tokens[p.at-1]
		t := p.next()
		if t.Is("run") && t.Depth == depth && (before.Is("{") || before.Is(",") || before.Is("async")) {
			p.take(":")
			p.function(fn)
		}
	}
}

// declaration reads "type Name = …" or "interface Name { … }".
func (p *parser) declaration(doc string) {
	isType, name := p.next().Is("type"), p.peek()
	if name.Kind != token.Word || name.Lines {
		return
	}
	p.next()
	d := &declaration{doc: doc}
	switch {
	case p.script.types[name.Text] != nil:
		d.wrong = "is declared twice"
	case p.peek().Is("<"):
		d.wrong = "has type parameters"
	case p.peek().Is("extends"):
		d.wrong = "extends another"
	case isType && !p.take("="), !isType && !p.peek().Is("{"):
		return
	}
	p.script.types[name.Text] = d
	if d.begin = p.at; p.peek().Is("{") && !isType {
		p.brackets()
	} else {
		for !p.ended() {
			p.at++
		}
	}
	d.end = p.at
}
