package comment

import "cmp"

// A script is the file that is read.
type script struct {
	tokens    []token
	types     map[string]*declaration
	functions map[string]*function // by their names in the file
	exports   []export
	work      int // bytes of named types that were read
}

type export struct{ name, local string }

// A function is one at the top of a file, or what tool is called with.
type function struct {
	name   token
	doc    string // the comment above it
	tool   bool   // the arguments are one object, whatever the parameters look like
	params int    // where its parameters begin, or 0 if none can be read
	wrong  string // why it can't be read
}

// A declaration is a type that has a name.
type declaration struct {
	doc        string
	begin, end int    // tokens
	wrong      string // why it can't be read
}

// statement reads what stands at the top of the file up to the next token there, and notes functions, types and exports.
func (p *parser) statement() {
	for p.peek().kind != end && p.peek().depth > 0 { // nothing in brackets is at the top
		p.at++
	}
	fn := &function{doc: p.peek().doc}
	if typedef.MatchString(fn.doc) {
		fn.doc = "" // it is about a type of its own
	}
	exported := p.take("export")
	byDefault := exported && p.take("default")
	switch t := p.peek(); {
	case t.is("{") && exported:
		p.list()
	case t.is("async") || t.is("function") || t.is("tool") && byDefault:
		if p.function(fn) {
			p.script.note(fn, exported, byDefault)
		} else {
			p.next()
		}
	case t.is("const") || t.is("let") || t.is("var"):
		p.next()
		for fn.name = p.next(); !p.peek().is("=") && !p.ended(); { // its type
			p.at++
		}
		if fn.name.kind == word && p.take("=") && p.function(fn) {
			p.script.note(fn, exported, false)
		}
	case t.is("interface") || t.is("type"):
		p.declaration(fn.doc)
	default:
		if p.next(); byDefault && t.kind == word {
			p.script.exports = append(p.script.exports, export{"default", t.text})
		}
	}
}

// ended reports whether a statement at the top ends before the next token.
func (p *parser) ended() bool {
	t := p.peek()
	return t.kind == end || t.depth == 0 && (t.is(";") || t.lines && ends(p.tokens[p.at-1], false) && begins(t))
}

// list reads { a, b as c }. What another file has is not read.
func (p *parser) list() {
	var all []export
	for p.next(); !p.take("}") && p.peek().kind != end; p.take(",") {
		e := export{local: p.next().text}
		if e.name = e.local; p.take("as") {
			e.name = p.next().text
		}
		all = append(all, e)
	}
	if !p.peek().is("from") {
		p.script.exports = append(p.script.exports, all...)
	}
}

// note notes a function by its name.
func (f *script) note(fn *function, exported, byDefault bool) {
	e := export{fn.name.text, fn.name.text}
	if byDefault {
		e.name = "default"
	}
	if before := f.functions[e.local]; before != nil {
		before.doc, before.wrong = cmp.Or(before.doc, fn.doc), "a function with several signatures is not read: "+instead
	} else if fn.name.kind == word {
		if f.functions[e.local] = fn; exported {
			f.exports = append(f.exports, e)
		}
	}
}

// function reads a function as far as its parameters, or what tool is called with. It reports whether there is either.
func (p *parser) function(fn *function) bool {
	isAsync := p.take("async")
	following := p.tokens[min(p.at+1, len(p.tokens)-1)]
	if !isAsync && p.peek().is("tool") && following.is("(") && !fn.tool {
		if fn.tool = true; fn.name.kind != word {
			fn.name = p.peek()
		}
		p.at += 2
		p.argument(fn)
		return true
	}
	switch t := p.peek(); {
	case p.take("function"):
		if p.take("*"); p.peek().kind == word {
			if name := p.next(); fn.name.kind != word {
				fn.name = name
			}
		}
	case t.is("("), t.is("<"), t.kind == word && following.is("=>"):
	default:
		return false
	}
	if p.peek().is("<") {
		fn.wrong = "a function with type parameters is not read: " + instead
	}
	fn.params = p.at
	return true
}

// argument reads what tool is called with: a function, or an object whose member run is one.
func (p *parser) argument(fn *function) {
	if !p.peek().is("{") {
		p.function(fn)
		return
	}
	for depth := p.next().depth + 1; p.peek().kind != end && p.peek().depth >= depth; {
		before := p.tokens[p.at-1]
		t := p.next()
		if t.is("run") && t.depth == depth && (before.is("{") || before.is(",") || before.is("async")) {
			p.take(":")
			p.function(fn)
		}
	}
}

// declaration reads "type Name = …" or "interface Name { … }".
func (p *parser) declaration(doc string) {
	isType, name := p.next().is("type"), p.peek()
	if name.kind != word || name.lines {
		return
	}
	p.next()
	d := &declaration{doc: doc}
	switch {
	case p.script.types[name.text] != nil:
		d.wrong = "is declared twice"
	case p.peek().is("<"):
		d.wrong = "has type parameters"
	case p.peek().is("extends"):
		d.wrong = "extends another"
	case isType && !p.take("="), !isType && !p.peek().is("{"):
		return
	}
	p.script.types[name.text] = d
	if d.begin = p.at; p.peek().is("{") && !isType {
		p.brackets()
	} else {
		for !p.ended() {
			p.at++
		}
	}
	d.end = p.at
}
