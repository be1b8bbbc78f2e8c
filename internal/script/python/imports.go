package python

import (
	"bytes"
	"regexp"
	"sync"
	"unicode/utf8"
)

// An imported is a module that a file imports: the first part of its name, and where that stands, counted from 1.
type imported struct {
	name         string
	line, column int
}

// statement finds imports in a source whose texts and comments are blank. They may stand behind a colon or a semicolon. Classes of Unicode take
// long to compile, so that is not done at each start of the program.
var (
	statement  = once(`(?:^|[\n;:])[ \t\f]*(?:from[ \t\v]+([\pL_][\pL\pN_]*)[.\pL\pN_]*[ \t\v]+import\b|import[ \t\v]+([^\n;]+))`)
	moduleName = once(`(?:^|,)[ \t\v]*([\pL_][\pL\pN_]*)`)
)

// once compiles an expression when it is first needed.
func once(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// importsOf returns what a source imports by absolute names, in their order. A source that Python would not read gets the imports that can be
// made out: what is wrong with it, the interpreter says better.
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

// blanked returns a source of the same length without its texts and comments. Lines that go on at the next are one: their breaks are
// blank, too, but as vertical tabs, so that they still count.
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

// blankText blanks the text that begins at i, and returns the place behind it.
func blankText(out []byte, i int) int {
	mark := bytes.Clone(out[i : i+1])
	if i+2 < len(out) && out[i+1] == out[i] && out[i+2] == out[i] {
		mark = bytes.Clone(out[i : i+3])
	}
	j := i + len(mark)
	for j < len(out) && !bytes.HasPrefix(out[j:], mark) {
		if len(mark) == 1 && out[j] == '\n' {
			break // the text has no end: what is behind it is code
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

// isIdentifier reports whether a module can have a name.
func isIdentifier(name string) bool { return identifier().MatchString(name) }

var identifier = once(`^[\pL_][\pL\pN_]*$`)
