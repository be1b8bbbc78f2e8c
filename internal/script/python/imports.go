package python

import (
	"bytes"
	"regexp"
	"sync"
	"unicode/utf8"
)

// An imported is an import in a file: the first part of the module's name, and its position, counted from 1.
type imported struct {
	name         string
	line, column int
}

// statement finds imports in a source whose strings and comments are blank. An import may follow a colon or a semicolon. Compiling classes of Unicode
// takes long, so it is not done at each start of the program.
var (
	statement  = once(`(?:^|[\n;:])[ \t\f]*(?:from[ \t\v]+([\pL_][\pL\pN_]*)[.\pL\pN_]*[ \t\v]+import\b|import[ \t\v]+([^\n;]+))`)
	moduleName = once(`(?:^|,)[ \t\v]*([\pL_][\pL\pN_]*)`)
)

// once compiles an expression when it is first needed.
func once(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// importsOf returns what a source imports by absolute names, in order. For a source that Python would refuse, it returns the imports that it
// recognizes: the interpreter's own error message is better.
func importsOf(source []byte) []imported {
	code := blanked(source)
	var out []imported
	at, line, begin := 0, 1, 0
	add := func(from, to int) {
		for ; at < from; at++ {
			if code[at] == '\n' || code[at] == '\v' {
				line, begin = line+1, at+1
			}
		}
		out = append(out, imported{string(code[from:to]), line, utf8.RuneCount(code[begin:from]) + 1})
	}
	for _, m := range statement().FindAllSubmatchIndex(code, -1) {
		if m[2] >= 0 {
			add(m[2], m[3])
			continue
		}
		for _, n := range moduleName().FindAllSubmatchIndex(code[m[4]:m[5]], -1) {
			add(m[4]+n[2], m[4]+n[3])
		}
	}
	return out
}

// blanked returns a source of the same length with blanks in place of its strings and comments. Lines that are continued count as one: their line
// breaks become vertical tabs, so that they can still be counted.
func blanked(source []byte) []byte {
	out := bytes.ReplaceAll(source, []byte("\r"), []byte(" "))
	for i := 0; i < len(out); {
		switch c := out[i]; c {
		case '#':
			for i < len(out) && out[i] != '\n' {
				out[i] = ' '
				i++
			}
		case '\'', '"':
			i = blankText(out, i)
		case '\\':
			if i+1 < len(out) && out[i+1] == '\n' {
				out[i], out[i+1] = ' ', '\v'
			}
			i++
		default:
			i++
		}
	}
	return out
}

// blankText blanks the string that begins at i, and returns the place after it.
func blankText(out []byte, i int) int {
	mark := bytes.Clone(out[i : i+1])
	if i+2 < len(out) && out[i+1] == out[i] && out[i+2] == out[i] {
		mark = bytes.Clone(out[i : i+3])
	}
	j := i + len(mark)
	for j < len(out) && !bytes.HasPrefix(out[j:], mark) {
		if len(mark) == 1 && out[j] == '\n' {
			break // the string has no end: what follows is code
		}
		if out[j] == '\\' {
			j++
		}
		j++
	}
	end := min(j+len(mark), len(out))
	if j < len(out) && out[j] == '\n' {
		end = j
	}
	for ; i < end; i++ {
		if out[i] != '\n' {
			out[i] = ' '
		}
	}
	return end
}

// isIdentifier reports whether a module can have that name.
func isIdentifier(name string) bool { return identifier().MatchString(name) }

var identifier = once(`^[\pL_][\pL\pN_]*$`)
