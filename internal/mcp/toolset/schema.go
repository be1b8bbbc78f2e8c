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

// inputOf returns the schema of a tool's arguments: the author's own, whose root says that it is an object.
func inputOf(s *schema.Schema) (json.RawMessage, error) {
	text, err := compact(s.JSON())
	if err != nil {
		return nil, err
	}
	return typed(text)
}

// outputOf returns the schema of a tool's result, or nothing if the schema is true or false, which clients refuse.
func outputOf(s *schema.Schema) (json.RawMessage, error) {
	text, err := compact(s.JSON())
	if err != nil || text[0] != '{' {
		return nil, err
	}
	return text, nil
}

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
		return nil, fmt.Errorf("it is %s, but MCP requires an object", text.Short(string(schema)))
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
