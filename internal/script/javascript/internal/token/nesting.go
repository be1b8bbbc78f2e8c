package token

// Nesting returns how deep a parser has to recurse for a source: how deeply brackets are nested, and the largest number of open tokens at any place.
// Tokens in closed brackets, finished statements and finished list elements are not open. Files that people or their tools write have a short chain,
// whatever their size; "!!!!…" and "if (a) if (b) …" have a long one.
func Nesting(source string) (brackets, chain int) {
	l := newLexer(source)
	open := []int{0}   // open tokens so far, for each open bracket, outermost first
	angles := []int{0} // for each of these brackets, how many < have no > yet: they may be brackets of types
	total := 0
	ended := false // whether the last token may have ended a statement
	for {
		before := l.last
		t := l.next()
		if t.Kind == End {
			return brackets, chain
		}
		if ended && !continues(t) || t.Lines && ends(before, l.condition) && begins(t) {
			total -= open[len(open)-1]
			open[len(open)-1], angles[len(angles)-1] = 0, 0
		}
		ended = t.Is(";") || t.Is("}")
		for len(l.open) < len(open)-1 {
			last := len(open) - 1
			total -= open[last]
			open, angles = open[:last], angles[:last]
		}
		brackets = max(brackets, len(l.open))
		top := len(open) - 1
		switch {
		case t.Is(","):
			total += angles[top] - open[top]
			open[top] = angles[top]
		case t.Is("<"):
			angles[top]++
		case t.Is(">") && angles[top] > 0:
			angles[top]--
		}
		open[top]++
		total++
		chain = max(chain, total)
		for len(l.open) > len(open)-1 {
			open, angles = append(open, 0), append(angles, 0)
		}
	}
}

// Parted reports whether a statement ends between two tokens because a line ends there.
func Parted(before, t Token) bool { return t.Lines && ends(before, false) && begins(t) }

// continues reports whether a token continues a statement after a ; or a } that may have ended it.
func continues(t Token) bool {
	switch t.Kind {
	case Word:
		switch t.Text {
		case "else", "catch", "finally", "in", "of", "instanceof", "as", "satisfies", "extends", "implements":
			return true
		}
		return false
	case Mark:
		return t.Text != "}" && t.Text != "@" && t.Text != "{"
	}
	return t.Kind == Template
}

// ends reports whether a statement may end with a token, if the next token begins a line.
func ends(t Token, condition bool) bool {
	switch t.Kind {
	case Word:
		switch t.Text {
		case "else", "do", "return", "typeof", "void", "delete", "await", "yield", "new", "in", "of", "instanceof", "throw", "case", "keyof", "readonly", "extends", "as", "async", "unique", "infer", "is", "asserts", "declare", "abstract", "namespace", "module", "global":
			return false
		}
		return true
	case Mark:
		return t.Text == ")" && !condition || t.Text == "]" || t.Text == "}"
	}
	return true
}

// begins reports whether a statement may begin with a token.
func begins(t Token) bool {
	return !continues(t) && t.Kind != Mark || t.Is("}") || t.Is("@") || t.Is("{")
}
