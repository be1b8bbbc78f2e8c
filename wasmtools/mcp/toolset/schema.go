package toolset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A shownSchema is a schema as clients see it, for each era.
type shownSchema struct {
	text [2]json.RawMessage
	rest string // a schema of what the legacy form could not say, or empty
}

// inputOf returns the schema of a tool's arguments. Since 2026-07-28 it is the author's own, whose root says that it is an
// object. Clients of earlier versions hand it to model APIs that refuse more than a plain object at the root.
func inputOf(s *schema.Schema) (shown shownSchema, err error) {
	text, err := compact(s.JSON())
	if err != nil {
		return shown, err
	}
	if shown.text[Modern], err = typed(text); err != nil {
		return shown, err
	}
	flat, rest := s.Flat()
	if shown.text[Legacy] = shown.text[Modern]; !same(flat, s.JSON()) {
		if shown.text[Legacy], err = compact(flat); err != nil {
			return shown, err
		}
	}
	shown.rest = string(rest)
	return shown, nil
}

// outputOf returns the schema of a tool's result: in the legacy era only for results that are objects, and if all clients can
// compile it, because some refuse the whole list otherwise.
func outputOf(s *schema.Schema) (shown shownSchema, err error) {
	text, err := compact(s.JSON())
	if err != nil {
		return shown, err
	}
	if text[0] == '{' { // and not true or false, which clients refuse
		shown.text[Modern] = text
	}
	switch standalone := s.Standalone(); {
	case standalone == nil:
	case same(standalone, s.JSON()):
		shown.text[Legacy] = text
	default:
		shown.text[Legacy], err = compact(standalone)
	}
	if !isPortable(shown.text[Legacy]) {
		shown.text[Legacy] = nil
	}
	return shown, err
}

// same reports whether two texts are one and the same.
func same(a, b json.RawMessage) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// typed returns a schema whose root says that it is an object.
func typed(schema json.RawMessage) (json.RawMessage, error) {
	const usual = `{"type":"object"`
	if strings.HasPrefix(string(schema), usual) && (schema[len(usual)] == ',' || schema[len(usual)] == '}') {
		return schema, nil
	}
	var tree jsontree.Tree
	if err := tree.Read(string(schema)); err != nil {
		return nil, err
	}
	root := &tree.Values[0]
	if root.Kind != jsontree.Object {
		return nil, fmt.Errorf("it is %s, and MCP wants an object", text.Short(string(schema)))
	}
	switch typ := tree.Member(0, "type"); {
	case typ == 0 && root.Count == 0:
		return json.RawMessage(`{"type":"object"}`), nil
	case typ == 0:
		return append([]byte(`{"type":"object",`), schema[1:]...), nil
	case tree.Values[typ].Text == `"object"`:
		return schema, nil
	case tree.Values[typ].Kind == jsontree.Array && bytes.Contains([]byte(tree.Values[typ].Text), []byte(`"object"`)):
		v := tree.Values[typ]
		return bytes.Join([][]byte{schema[:v.Start], schema[int(v.Start)+len(v.Text):]}, []byte(`"object"`)), nil
	}
	return nil, errors.New(`its "type" is not "object"`)
}

// compact returns JSON without white space.
func compact(text json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	out.Grow(len(text))
	if err := json.Compact(&out, text); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
