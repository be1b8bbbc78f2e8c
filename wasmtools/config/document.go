package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/toolsrv/toolsrv/internal/text"
)

// What a document can hold at most. No valid one comes near, and a hostile one costs no more than its bytes.
const (
	maxDepth    = 16
	maxKey      = 64      // bytes of one part of a key
	maxPath     = 256     // bytes of a key with the tables that hold it
	maxKeys     = 12_000  // more than maxOverrides full ones have; the decoder's time grows with the square
	maxElements = 100_000 // of lists
	maxProblems = 10      // that are reported at once
)

// A document is a TOML file while it is read: it knows where each key stands, and what is wrong with it.
type document struct {
	name     string
	text     []byte
	keys     int
	elements int
	offsets  map[string]int // from "limits.timeout" or "override[0].match" to the key's place in text
	problems []problem
}

type problem struct {
	offset int
	err    error
}

// parse checks the text, notes the places of its keys, and returns its values.
func (d *document) parse(text []byte) (map[string]any, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("%s: %w", d.name, errTooLarge)
	}
	d.text, d.offsets = text, map[string]int{}
	// This comes first, because it bounds what the decoder below would follow.
	if err := d.locate(); err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		var e *toml.DecodeError
		if errors.As(err, &e) {
			line, column := e.Position()
			return nil, fmt.Errorf("%s:%d:%d: %s", d.name, line, column, strings.TrimPrefix(e.Error(), "toml: "))
		}
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return values, nil
}

// fail notes a problem with the key at path.
func (d *document) fail(path string, err error) {
	d.problems = append(d.problems, problem{d.offsets[path], err})
}

// err returns the first problems in the order of their lines, or nil where there are none.
func (d *document) err() error {
	slices.SortFunc(d.problems, func(a, b problem) int {
		if n := cmp.Compare(a.offset, b.offset); n != 0 {
			return n
		}
		return strings.Compare(a.err.Error(), b.err.Error())
	})
	var errs []error
	for i, p := range d.problems {
		if i == maxProblems {
			errs = append(errs, fmt.Errorf("%s: and %d more", d.name, len(d.problems)-i))
			break
		}
		errs = append(errs, fmt.Errorf("%s: %w", d.place(p.offset), p.err))
	}
	return errors.Join(errs...)
}

// errorAt returns err with the place of the key at path in front.
func (d *document) errorAt(path string, err error) error {
	return fmt.Errorf("%s: %s: %w", d.place(d.offsets[path]), path, err)
}

// place returns "file:line:column" of an offset.
func (d *document) place(offset int) string {
	before := d.text[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := offset - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%s:%d:%d", d.name, line, column)
}

// locate fills offsets, and refuses what is too deep. Wrong syntax is left to the decoder, which explains it better.
func (d *document) locate() error {
	var p unstable.Parser
	p.Reset(d.text)
	lengths := map[string]int{} // of the arrays of tables
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		path, offset, err := d.key(table, e, lengths)
		if err != nil {
			return err
		}
		switch e.Kind {
		case unstable.Table:
			table = d.element(path, lengths)
			err = d.note(table, offset)
		case unstable.ArrayTable:
			if err = d.note(path, offset); err == nil {
				lengths[path]++
				table = d.element(path, lengths)
				err = d.note(table, offset)
			}
		case unstable.KeyValue:
			err = d.value(path, offset, e.Value(), 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// key returns the path of an expression's key below table, and the key's offset.
func (d *document) key(table string, e *unstable.Node, lengths map[string]int) (path string, offset int, err error) {
	d.keys++
	if e.Kind == unstable.KeyValue {
		path = table
	}
	offset = -1
	parts := 0
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if offset < 0 {
			offset = int(n.Raw.Offset)
		} else if lengths != nil {
			path = d.element(path, lengths)
		}
		if parts++; parts > maxDepth {
			return "", 0, fmt.Errorf("%s: the key has more than %d parts", d.place(offset), maxDepth)
		}
		if len(n.Data) > maxKey {
			return "", 0, fmt.Errorf("%s: unknown key %q", d.place(offset), text.Short(string(n.Data)))
		}
		path = join(path, string(n.Data))
	}
	return path, offset, nil
}

// value notes the places of a key or an element and of what its value holds.
func (d *document) value(path string, offset int, v *unstable.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: the value is nested more than %d deep", d.place(offset), maxDepth)
	}
	if err := d.note(path, offset); err != nil {
		return err
	}
	switch v.Kind {
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			n := it.Node()
			d.elements++
			if n.Raw.Length > 0 {
				offset = int(n.Raw.Offset)
			}
			if err := d.value(index(path, i), offset, n, depth+1); err != nil {
				return err
			}
		}
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			n := it.Node()
			member, offset, err := d.key(path, n, nil)
			if err != nil {
				return err
			}
			if err := d.value(member, offset, n.Value(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// note keeps the first place of a key or an element.
func (d *document) note(path string, offset int) error {
	switch {
	case len(path) > maxPath:
		return fmt.Errorf("%s: unknown key %q", d.place(offset), text.Short(path))
	case d.keys > maxKeys:
		return fmt.Errorf("%s: the file has more than %d keys", d.place(offset), maxKeys)
	case d.elements > maxElements:
		return fmt.Errorf("%s: the lists have more than %d elements: keep tokens in a tokens_file", d.place(offset), maxElements)
	}
	if _, ok := d.offsets[path]; !ok {
		d.offsets[path] = offset
	}
	return nil
}

// element returns the path of the newest element of an array of tables, or else path.
func (d *document) element(path string, lengths map[string]int) string {
	if n := lengths[path]; n > 0 {
		return index(path, n-1)
	}
	return path
}

// join returns the path of a table's member. A name that would need quotes has them, so that no two paths are alike.
func join(table, name string) string {
	if name == "" || strings.ContainsFunc(name, needsQuotes) {
		name = strconv.Quote(name)
	}
	if table == "" {
		return name
	}
	return table + "." + name
}

// needsQuotes reports whether TOML wants a key with a character in quotes.
func needsQuotes(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		return false
	}
	return true
}

func index(array string, i int) string {
	return array + "[" + strconv.Itoa(i) + "]"
}
