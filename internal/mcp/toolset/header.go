package toolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
)

// headerKeyword marks a property of a schema whose value clients repeat in an HTTP header, from 2026-07-28 on.
const headerKeyword = "x-mcp-header"

// maxHeaders is how many headers a tool may have: each call is compared with all of them.
const maxHeaders = 32

// A Header is a property whose value clients repeat in an HTTP header.
type Header struct {
	// Name is what follows "Mcp-Param-" in the header's name.
	Name string
	// Path is the member names that lead to the property from the top of the arguments.
	Path []string
	// Type is "string", "integer" or "boolean".
	Type string
}

// headersOf returns the headers of a compact schema. If a mark breaks the protocol's rules, clients drop the tool, so the schema is returned without
// any marks, and the error says why.
func headersOf(schema json.RawMessage) (headers []Header, shown json.RawMessage, err error) {
	if !strings.Contains(string(schema), `"`+headerKeyword+`":"`) {
		return nil, schema, nil
	}
	f := headerFinder{}
	if err := f.tree.Read(string(schema)); err != nil {
		return nil, schema, err
	}
	marked := 0
	for i := range f.tree.Values {
		if v := &f.tree.Values[i]; v.Key == headerKeyword && v.Kind == jsontree.String {
			marked++
		}
	}
	if err = f.find(0, nil); err == nil && marked > len(f.headers) {
		err = fmt.Errorf("%s is allowed only for parameters reached through properties", headerKeyword)
	}
	if err != nil {
		return nil, f.without(schema), err
	}
	return f.headers, schema, nil
}

type headerFinder struct {
	tree    jsontree.Tree
	headers []Header
}

// find finds the headers of the properties of the schema at i.
func (f *headerFinder) find(i int32, path []string) error {
	properties := f.tree.Member(i, "properties")
	if properties == 0 || f.tree.Values[properties].Kind != jsontree.Object {
		return nil
	}
	for p := f.tree.Values[properties].First; p != 0; p = f.tree.Values[p].Next {
		below := append(slices.Clip(path), f.tree.Values[p].Key)
		if m := f.tree.Member(p, headerKeyword); m != 0 {
			if err := f.add(p, m, below); err != nil {
				return fmt.Errorf("property %q: %w", text.Short(strings.Join(below, ".")), err)
			}
		}
		if err := f.find(p, below); err != nil {
			return err
		}
	}
	return nil
}

func (f *headerFinder) add(property, mark int32, path []string) error {
	v := &f.tree.Values[mark]
	if v.Kind != jsontree.String {
		return fmt.Errorf("%s is not a string", headerKeyword)
	}
	name := v.Decoded()
	if !isToken(name) {
		return fmt.Errorf("%s %q is not a name for a header", headerKeyword, text.Short(name))
	}
	if slices.ContainsFunc(f.headers, func(h Header) bool { return strings.EqualFold(h.Name, name) }) {
		return fmt.Errorf("%s %q is taken by another property", headerKeyword, text.Short(name))
	}
	if len(f.headers) == maxHeaders {
		return fmt.Errorf("more than %d properties have %s", maxHeaders, headerKeyword)
	}
	h := Header{Name: name, Path: path}
	if t := f.tree.Member(property, "type"); t != 0 && f.tree.Values[t].Kind == jsontree.String {
		h.Type = f.tree.Values[t].Decoded()
	}
	if h.Type != "string" && h.Type != "integer" && h.Type != "boolean" {
		return errors.New(headerKeyword + ` is for properties of the type "string", "integer" or "boolean"`)
	}
	f.headers = append(f.headers, h)
	return nil
}

// isToken reports whether a text is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// without removes the marks from a compact schema.
func (f *headerFinder) without(schema json.RawMessage) json.RawMessage {
	const key = `"` + headerKeyword + `":`
	var out []byte
	from := 0
	for i := range f.tree.Values {
		v := &f.tree.Values[i]
		start, end := int(v.Start)-len(key), int(v.Start)+len(v.Text)
		if v.Key != headerKeyword || v.Kind != jsontree.String || start < 0 || string(schema[start:v.Start]) != key {
			continue
		}
		switch {
		case schema[end] == ',': // the comma goes, and the next member stays
			end++
		case schema[start-1] == ',':
			start--
		}
		if start < from { // the comma before it has been removed already
			start = from
		}
		out = append(out, schema[from:start]...)
		from = end
	}
	return append(out, schema[from:]...)
}
