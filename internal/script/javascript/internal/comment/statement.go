package comment

import "cmp"

// A reader goes over tokens, the last of which is of kind end.
type reader struct {
	tokens []token
	at     int
}

func (r *reader) peek() token { return r.tokens[r.at] }

// next goes on, but not beyond the end, and returns what it left.
func (r *reader) next() token {
	t := r.peek()
	if t.kind != end {
		r.at++
	}
	return t
}

// take goes on if the next token is what.
func (r *reader) take(what string) bool {
	if r.peek().is(what) {
		r.at++
		return true
	}
	return false
}

// until goes to a comma, or to what, or out of these brackets, and returns what it left.
func (r *reader) until(what string) []token {
	begin, depth := r.at, r.peek().depth
	if t := r.peek(); t.is(")") || t.is("]") || t.is("}") {
		return nil
	}
	for t := r.peek(); t.kind != end && (t.depth > depth || t.depth == depth && !t.is(",") && !t.is(what)); t = r.peek() {
		r.at++
	}
	return r.tokens[begin:r.at]
}

// brackets goes over the brackets that begin here, and what is in them.
func (r *reader) brackets() {
	depth := r.next().depth
	for r.peek().kind != end && r.peek().depth > depth {
		r.at++
	}
	r.next()
}

// ended reports whether a statement at the top ends before the next token.
func (r *reader) ended() bool {
	t := r.peek()
	return t.kind == end || t.depth == 0 && (t.is(";") || t.lines && ends(r.tokens[r.at-1], false) && begins(t))
}

// A function is one at the top of a file, or what tool is called with.
type function struct {
	name   token
	doc    string // the comment above it
	tool   bool   // the arguments are one object, whatever the parameters look like
	params int    // where its parameters begin, or 0 if it has none that can be read
	wrong  string // why it can't be read
}

// A definition is a type that has a name.
type definition struct {
	doc        string
	begin, end int    // tokens
	wrong      string // why it can't be read
}

// read goes over the statements of the file, and notes functions, types and exports.
func (f *script) read() {
	for r := (&reader{tokens: f.tokens}); r.peek().kind != end; {
		f.statement(r)
	}
}

// statement reads what stands at the top of the file up to the next token there.
func (f *script) statement(r *reader) {
	for r.peek().kind != end && r.peek().depth > 0 { // nothing in brackets is at the top
		r.at++
	}
	doc := r.peek().doc
	if typedef.MatchString(doc) {
		doc = "" // it is about a type, and not about what follows
	}
	exported := r.take("export")
	byDefault := exported && r.take("default")
	r.take("async")
	switch t := r.next(); {
	case t.is("{") && exported:
		f.list(r)
	case t.is("function"):
		r.take("*")
		if fn := (&function{name: r.peek(), doc: doc}); fn.name.kind == word {
			r.next()
			fn.signature(r)
			f.note(fn, exported, byDefault)
		}
	case t.is("const") || t.is("let") || t.is("var"):
		f.variable(r, doc, exported)
	case t.is("interface") || t.is("type"):
		f.definition(r, doc, t.is("interface"))
	case byDefault && t.is("tool") && r.peek().is("("):
		fn := &function{name: t, doc: doc, tool: true}
		fn.toolAt(r)
		f.functions["default"], f.exports = fn, append(f.exports, export{"default", "default"})
	case byDefault && t.kind == word:
		f.exports = append(f.exports, export{"default", t.text})
	}
}

// list reads { a, b as c } from behind its bracket. What another file has is not read.
func (f *script) list(r *reader) {
	before := len(f.exports)
	for !r.take("}") && r.peek().kind != end {
		local := r.next().text
		name := local
		if r.take("as") {
			name = r.next().text
		}
		f.exports = append(f.exports, export{name, local})
		r.take(",")
	}
	if r.peek().is("from") {
		f.exports = f.exports[:before]
	}
}

// note notes a function by its name.
func (f *script) note(fn *function, exported, byDefault bool) {
	local := fn.name.text
	if before := f.functions[local]; before != nil {
		before.doc, before.wrong = cmp.Or(before.doc, fn.doc), "a function with several signatures is not read: "+useSchema
		return
	}
	if f.functions[local] = fn; byDefault {
		f.exports = append(f.exports, export{"default", local})
	} else if exported {
		f.exports = append(f.exports, export{local, local})
	}
}

// signature notes where the parameters of a function begin, and goes behind them.
func (fn *function) signature(r *reader) {
	if r.generics() {
		fn.wrong = "a function with type parameters is not read: write the types themselves, or " + useSchema
	}
	if fn.params = r.at; r.peek().is("(") {
		r.brackets()
	}
}

// generics goes over <T extends …>, and reports whether there was any.
func (r *reader) generics() bool {
	if !r.peek().is("<") {
		return false
	}
	for open := 0; r.peek().kind != end; {
		if t := r.next(); t.is("<") {
			open++
		} else if t.is(">") {
			if open--; open == 0 {
				break
			}
		}
	}
	return true
}

// variable reads "name = (…) => …", "name = function (…) …" or "name = tool(…)".
func (f *script) variable(r *reader, doc string, exported bool) {
	fn := &function{name: r.peek(), doc: doc}
	if fn.name.kind != word {
		return
	}
	for r.next(); !r.peek().is("=") && !r.ended(); { // its type
		r.at++
	}
	if !r.take("=") {
		return
	}
	if fn.tool = r.peek().is("tool") && r.tokens[r.at+1].is("("); fn.tool {
		r.next()
		fn.toolAt(r)
		f.note(fn, exported, false)
	} else if fn.expression(r) {
		f.note(fn, exported, false)
	}
}

// expression reads a function that is written as an expression, as far as its parameters.
func (fn *function) expression(r *reader) bool {
	r.take("async")
	switch {
	case r.take("function"):
		r.take("*")
		if r.peek().kind == word {
			r.next()
		}
		fn.signature(r)
	case r.peek().kind == word && r.tokens[r.at+1].is("=>"):
		fn.params = r.at
	case r.peek().is("(") || r.peek().is("<"):
		fn.signature(r)
	default:
		return false
	}
	return true
}

// toolAt reads what tool is called with, from its parenthesis: a function, or an object whose member run is one.
func (fn *function) toolAt(r *reader) {
	depth := r.next().depth
	if !r.peek().is("{") {
		fn.expression(r)
		return
	}
	for r.peek().kind != end && r.peek().depth > depth {
		before := r.tokens[r.at-1]
		t := r.next()
		if !t.is("run") || t.depth != depth+2 || !before.is("{") && !before.is(",") && !before.is("async") {
			continue
		}
		if r.take(":") {
			fn.expression(r)
		} else if r.peek().is("(") || r.peek().is("<") {
			fn.signature(r)
		}
	}
}

// definition reads "Name = …" or "Name { … }" from behind the keyword.
func (f *script) definition(r *reader, doc string, isInterface bool) {
	name := r.peek()
	if name.kind != word || name.lines {
		return
	}
	r.next()
	d := &definition{doc: doc}
	switch before := f.types[name.text]; {
	case before != nil:
		d.wrong = "is declared twice: write it once"
	case r.generics():
		d.wrong = "has type parameters, which are not read: write the types themselves"
	case r.peek().is("extends"):
		d.wrong = "extends another, which is not read: write all members in it"
	}
	f.types[name.text] = d
	if d.wrong != "" || !isInterface && !r.take("=") {
		return
	}
	if d.begin = r.at; isInterface && r.peek().is("{") {
		r.brackets()
	}
	for !isInterface && !r.ended() {
		r.at++
	}
	d.end = r.at
}
