package comment

import "slices"

// read goes over the statements of the file, and notes functions, types and exports.
func (f *file) read() {
	for f.peek().kind != end {
		f.statement()
	}
}

func (f *file) peek() token { return f.tokens[f.at] }

// next goes on, but not beyond the end.
func (f *file) next() {
	if f.peek().kind != end {
		f.at++
	}
}

// ahead returns the token after the next.
func (f *file) ahead() token { return f.tokens[min(f.at+1, len(f.tokens)-1)] }

// take goes on if the next token is what.
func (f *file) take(what string) bool {
	if !f.peek().is(what) {
		return false
	}
	f.next()
	return true
}

// statement reads what stands at the top of the file up to the next token there.
func (f *file) statement() {
	var said *comment
	for f.peek().kind == doc {
		c := parse(f.peek().text)
		for name, d := range c.typedefs {
			f.types[name] = d
		}
		if said = &c; len(c.typedefs) > 0 {
			said = nil
		}
		f.next()
	}
	exported := f.take("export")
	byDefault := exported && f.take("default")
	if exported && f.take("{") {
		f.exportList()
		return
	}
	f.take("declare")
	begin := f.at
	f.take("async")
	switch {
	case f.take("function"):
		f.take("*")
		f.functionAt(said, exported, byDefault)
		return
	case f.peek().is("const") || f.peek().is("let") || f.peek().is("var"):
		f.next()
		f.variable(said, exported)
		return
	case f.peek().is("interface") || f.peek().is("type"):
		f.typeAt(said)
		return
	}
	if byDefault && f.peek().kind == word {
		// export default greet, or tool(…)
		name := f.peek()
		if f.next(); name.text == "tool" && f.peek().is("(") {
			f.exports = append(f.exports, export{"default", "default"})
			f.toolAt(said, name, "default")
			return
		}
		f.exports = append(f.exports, export{"default", name.text})
		return
	}
	if f.at = begin; f.peek().kind != end {
		f.next()
	}
	// Nothing in brackets is at the top.
	for f.peek().kind != end && f.peek().depth > 0 {
		f.next()
	}
}

// exportList reads { a, b as c } from behind its bracket. What another file has is not read.
func (f *file) exportList() {
	begin := f.at
	for f.peek().kind != end && !(f.peek().is("}") && f.peek().depth == 0) {
		f.next()
	}
	parts := split(f.tokens[begin:f.at])
	if f.take("}"); f.peek().is("from") {
		return
	}
	for _, part := range parts {
		part = slices.DeleteFunc(slices.Clone(part), func(t token) bool { return t.kind == doc })
		if len(part) == 1 {
			f.exports = append(f.exports, export{part[0].text, part[0].text})
		} else if len(part) == 3 && part[1].is("as") {
			f.exports = append(f.exports, export{part[2].text, part[0].text})
		}
	}
}

// inner returns the tokens in the brackets that begin here, and goes behind them.
func (f *file) inner() []token {
	depth := f.peek().depth
	f.next()
	begin := f.at
	for f.peek().kind != end && f.peek().depth > depth {
		f.next()
	}
	out := f.tokens[begin:f.at]
	if f.peek().kind != end {
		f.next()
	}
	return out
}

// generics goes over <T extends …>.
func (f *file) generics() {
	if !f.peek().is("<") {
		return
	}
	for open := 0; f.peek().kind != end; f.next() {
		if f.peek().is("<") {
			open++
		} else if f.peek().is(">") {
			if open--; open == 0 {
				f.next()
				return
			}
		}
	}
}

// signature reads the parameters and the type of what a function returns.
func (f *file) signature(fn *function) {
	f.generics()
	if !f.peek().is("(") {
		return
	}
	fn.params = declaredIn(f.inner())
	if depth := f.peek().depth; f.take(":") {
		begin := f.at
		for f.peek().kind != end && !f.peek().is("=>") && !f.peek().is(";") && !(f.peek().is("{") && f.at > begin && !f.tokens[f.at-1].is("|") && !f.tokens[f.at-1].is("<") && !f.tokens[f.at-1].is("&") && !f.tokens[f.at-1].is(",")) {
			if f.peek().depth == depth && (f.peek().is("{") || f.peek().is("(") || f.peek().is("[")) {
				f.inner()
			} else {
				f.next()
			}
		}
		fn.returns = f.tokens[begin:f.at]
	}
}

// functionAt reads a function from behind its keyword.
func (f *file) functionAt(said *comment, exported, byDefault bool) {
	fn := &function{name: f.peek(), comment: said}
	if f.peek().kind != word {
		return
	}
	f.next()
	f.signature(fn)
	f.note(fn, fn.name.text, exported, byDefault)
}

// note notes a function. Of one with several signatures, that with a comment counts.
func (f *file) note(fn *function, local string, exported, byDefault bool) {
	if before := f.functions[local]; before != nil && before.comment != nil && fn.comment == nil {
		return
	}
	f.functions[local] = fn
	if byDefault {
		f.exports = append(f.exports, export{"default", local})
	} else if exported {
		f.exports = append(f.exports, export{local, local})
	}
}

// variable reads "name = (…) => …", "name = function (…) …" or "name = tool(…)".
func (f *file) variable(said *comment, exported bool) {
	name := f.peek()
	if name.kind != word {
		return
	}
	f.next()
	if f.take(":") { // its type
		for f.peek().kind != end && !f.peek().is("=") && !f.peek().is(";") {
			f.next()
		}
	}
	if !f.take("=") {
		return
	}
	for f.peek().kind == doc {
		f.next()
	}
	if f.peek().is("tool") && f.ahead().is("(") {
		f.next()
		if exported {
			f.exports = append(f.exports, export{name.text, name.text})
		}
		f.toolAt(said, name, name.text)
		return
	}
	if fn, ok := f.expression(name, said); ok {
		f.note(fn, name.text, exported, false)
	}
}

// expression reads a function that is written as an expression, as far as its parameters.
func (f *file) expression(name token, said *comment) (*function, bool) {
	fn := &function{name: name, comment: said}
	f.take("async")
	if f.take("function") {
		f.take("*")
		if f.peek().kind == word {
			f.next()
		}
		f.signature(fn)
		return fn, true
	}
	if f.peek().kind == word && f.ahead().is("=>") {
		fn.params = []declared{{name: f.peek().text}}
		f.next()
		return fn, true
	}
	if f.peek().is("(") || f.peek().is("<") {
		f.signature(fn)
		return fn, f.peek().is("=>")
	}
	return nil, false
}

// toolAt reads what tool is called with, from its parenthesis: a function, or an object whose member run is one.
func (f *file) toolAt(said *comment, name token, local string) {
	fn := &function{name: name, comment: said, tool: true}
	f.functions[local] = fn
	depth := f.peek().depth
	f.next()
	for f.peek().kind == doc {
		f.next()
	}
	if !f.peek().is("{") {
		if inner, ok := f.expression(name, said); ok {
			fn.params, fn.returns = inner.params, inner.returns
		}
	}
	for f.peek().kind != end && f.peek().depth > depth {
		before := f.tokens[f.at-1]
		isRun := f.peek().is("run") && f.peek().depth == depth+2 && (before.is("{") || before.is(",") || before.is("async") || before.kind == doc)
		f.next()
		if isRun && (f.take(":") || f.peek().is("(")) {
			if inner, ok := f.runAt(name, said); ok {
				fn.params, fn.returns = inner.params, inner.returns
			}
		}
	}
}

// runAt reads the member run: a method, or a function.
func (f *file) runAt(name token, said *comment) (*function, bool) {
	fn := &function{name: name, comment: said}
	if f.tokens[f.at-1].is("run") {
		f.signature(fn)
		return fn, true
	}
	return f.expression(name, said)
}

// typeAt reads "type Name = …" or "interface Name { … }".
func (f *file) typeAt(said *comment) {
	isInterface := f.peek().is("interface")
	f.next()
	name := f.peek()
	if name.kind != word {
		return
	}
	f.next()
	if f.peek().is("<") { // what it is depends on its arguments
		f.generics()
		return
	}
	d := definition{}
	if said != nil {
		d.description = said.description
	}
	var begin int
	if isInterface {
		if f.take("extends") {
			for f.peek().kind == word || f.peek().is(",") {
				if f.peek().kind == word {
					d.extends = append(d.extends, f.peek().text)
				}
				f.next()
			}
		}
		if !f.peek().is("{") {
			return
		}
		begin = f.at
		f.inner()
	} else {
		if !f.take("=") {
			return
		}
		begin = f.at
		for f.peek().kind != end && !(f.peek().is(";") && f.peek().depth == 0) {
			before := f.tokens[f.at-1]
			joins := before.is("=") || before.is("|") || before.is("&") || before.is(":") || before.is("<") || before.is(",")
			if t := f.peek(); t.depth == 0 && t.lines && !joins && !t.is("|") && !t.is("&") && !t.is("}") && !t.is("]") && !t.is(")") && !t.is(">") {
				break
			}
			f.next()
		}
	}
	d.written = f.tokens[begin:f.at]
	f.types[name.text] = d
}
