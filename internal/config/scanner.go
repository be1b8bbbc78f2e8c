package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// These bound what a file may contain. No valid file comes near the bounds. Because of them, the cost of a hostile file grows only
// with its size.
const (
	maxPath     = 256     // bytes of a key with the tables and lists around it; this also bounds their nesting
	maxKeys     = 12_000  // parts of keys, more than maxOverrides full overrides have; the decoder's time grows with the square of their number
	maxElements = 100_000 // elements of all lists together
)

// A scanner finds the places of all keys and elements of a TOML file. It runs before the decoder and bounds the decoder's work. It accepts
// more than TOML, because the decoder says what is wrong.
type scanner struct {
	name           string
	text           []byte
	at             int            // where the next token begins
	offsets        map[string]int // the place in text of each key, such as "limits.timeout" or "override[0].match"
	lengths        map[string]int // how many tables each array of tables has had so far
	keys, elements int
}

// scan reads the whole text. Its error says which bound is exceeded, and where.
func (s *scanner) scan() error {
	s.offsets, s.lengths = map[string]int{}, map[string]int{}
	if at := bytes.IndexByte(s.text, 0); at >= 0 {
		return fmt.Errorf("%s: a null character: the file is binary, or UTF-16; save it as UTF-8", s.place(at))
	}
	table := ""
	for {
		token, offset := s.next()
		var err error
		switch {
		case token == "":
			return nil
		case token == "\n":
		case token != "[":
			s.at = offset
			err = s.keyValue(table)
		case bytes.HasPrefix(s.text[offset:], []byte("[[")):
			s.next()
			if table, offset, err = s.key("", "]"); err == nil {
				s.next()
				s.lengths[table]++
				table = s.newest(table)
				err = s.note(table, offset)
			}
		default:
			if table, _, err = s.key("", "]"); err == nil {
				table = s.newest(table)
			}
		}
		if err != nil {
			return err
		}
	}
}

// keyValue reads a key in a table, and its value.
func (s *scanner) keyValue(table string) error {
	path, _, err := s.key(table, "=")
	if err != nil {
		return err
	}
	return s.value(path)
}

// key reads a key in a table up to the token that ends it.
func (s *scanner) key(table, end string) (path string, offset int, err error) {
	path, offset = table, -1
	for {
		token, at := s.next()
		if offset < 0 {
			offset = at
		}
		switch token {
		case ".":
			continue
		case end, "\n", "":
			if path != table {
				return path, offset, nil
			}
			token = `""` // so that every level of nesting makes a path longer
			s.at = at
		}
		s.keys++
		path = join(s.newest(path), unquote(token))
		if err := s.note(path, offset); err != nil {
			return "", 0, err
		}
	}
}

// value reads the value of the key or the element at path.
func (s *scanner) value(path string) error {
	open, _ := s.next()
	for i := 0; ; {
		token, at := s.next()
		switch {
		case token == "":
			return nil
		case open != "[" && open != "{": // a plain value ends at the next token
			if token == "\n" || token == "," || token == "]" || token == "}" {
				s.at = at
				return nil
			}
			continue
		case token == "]", token == "}":
			return nil
		case token == ",", token == "\n":
			continue
		}
		s.at = at
		var err error
		if open == "{" {
			err = s.keyValue(path)
		} else {
			s.elements++
			element := index(path, i)
			i++
			if err = s.note(element, at); err == nil {
				err = s.value(element)
			}
		}
		if err != nil {
			return err
		}
	}
}

// next returns the next token and its offset: a word or a number, a string with its quotes, or a single character. At the end, the token is empty.
func (s *scanner) next() (token string, offset int) {
	rest := bytes.TrimLeft(s.text[s.at:], " \t\r")
	if len(rest) > 0 && rest[0] == '#' {
		rest = rest[before(rest, "\n"):]
	}
	n := min(1, len(rest))
	if n > 0 && (rest[0] == '"' || rest[0] == '\'') {
		n = stringLength(rest)
	} else if n > 0 && !strings.Contains(special, string(rest[:1])) {
		n = before(rest, special)
	}
	offset = len(s.text) - len(rest)
	s.at = offset + n
	return string(rest[:n]), offset
}

// special are the characters at which a word or a number ends.
const special = " \t\r\n#\"'.,=[]{}"

// before returns how many bytes of the text come before the first of some characters.
func before(text []byte, characters string) int {
	for n, c := range text {
		if strings.IndexByte(characters, c) >= 0 {
			return n
		}
	}
	return len(text)
}

// stringLength returns the length of the string at the beginning of a text. If the string has no end, the decoder will report that there.
func stringLength(text []byte) int {
	quote := text[:1]
	if three := bytes.Repeat(quote, 3); bytes.HasPrefix(text, three) {
		quote = three
	}
	for n := len(quote); n < len(text); n++ {
		switch {
		case text[n] == '\\' && quote[0] == '"':
			n++
		case text[n] == '\n' && len(quote) == 1:
			return n
		case bytes.HasPrefix(text[n:], quote):
			n += len(quote)
			if len(quote) == 3 { // two more quotes may belong to the string
				more := text[n:min(n+2, len(text))]
				n += len(more) - len(bytes.TrimLeft(more, string(quote[:1])))
			}
			return n
		}
	}
	return len(text)
}

// unquote returns the name in a part of a key.
func unquote(token string) string {
	var key struct{ Name string }
	if strings.ContainsAny(token[:1], `"'`) && toml.Unmarshal([]byte("Name="+token), &key) == nil {
		return key.Name
	}
	return token
}

// note keeps the place of a key or an element.
func (s *scanner) note(path string, offset int) error {
	switch {
	case len(path) > maxPath:
		return fmt.Errorf("%s: unknown key, of %d bytes with its tables", s.place(offset), len(path))
	case s.keys > maxKeys:
		return fmt.Errorf("%s: the file has more than %d keys", s.place(offset), maxKeys)
	case s.elements > maxElements:
		return fmt.Errorf("%s: the lists have more than %d elements: keep tokens in a tokens_file", s.place(offset), maxElements)
	}
	if _, ok := s.offsets[path]; !ok {
		s.offsets[path] = offset
	}
	return nil
}

// place returns "file:line:column" of an offset.
func (s *scanner) place(offset int) string {
	before := s.text[:offset]
	column := offset - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%s:%d:%d", s.name, s.line(offset), column)
}

// line returns the number of the line of an offset.
func (s *scanner) line(offset int) int { return 1 + bytes.Count(s.text[:offset], []byte("\n")) }

// newest returns the path of the newest element of an array of tables, or else path.
func (s *scanner) newest(path string) string {
	if n := s.lengths[path]; n > 0 {
		return index(path, n-1)
	}
	return path
}

// join returns the path of a table's member. A name that needs quotes gets them, so that no two paths are alike.
func join(table, name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(bare, r) }) {
		name = strconv.Quote(name)
	}
	if table == "" {
		return name
	}
	return table + "." + name
}

// bare are the characters of a key without quotes.
const bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

func index(list string, i int) string {
	return list + "[" + strconv.Itoa(i) + "]"
}
