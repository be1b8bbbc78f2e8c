package examples_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
)

// TestArraysOf checks that arrays are found in schemas, and not in values.
func TestArraysOf(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"type":"array","items":{}}`:                                                "1 []",
		`{"a":[{"schema":{"type":["array","null"]}}]}`:                               "1 [/a/-/schema]",
		`{"properties":{"type":{"type":"array"}},"type":"object"}`:                   "1 [/properties/type]",
		`{"properties":{"example":{"type":"array"}}}`:                                "1 [/properties/example]",
		`{"example":{"type":"array"},"enum":[{"type":"array"}],"default":{"a":[1]}}`: "0 []",
	} {
		var read any
		if err := json.Unmarshal([]byte(document), &read); err != nil {
			t.Fatal(err)
		}
		n, vague := arraysOf(read, "")
		if got := fmt.Sprint(n, vague); got != want {
			t.Errorf("%s: got %s, want %s", document, got, want)
		}
	}
}

// checkDocument checks the OpenAPI document of a table's tools.
func checkDocument(t *testing.T, table *wasmtools.RouteTable) {
	t.Helper()
	app := openapi.NewApp(table, openapi.Options{})
	defer app.Close()
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", http.NoBody))
	var paths []string
	for _, route := range table.Tools() {
		if route.Enabled {
			paths = append(paths, route.Path)
		}
	}
	checkArrays(t, w.Body.String(), paths...)
}

// checkArrays fails if an array's schema in a document has no items: client generators ignore such a schema, or drop the answer that
// contains it. The document must have the given paths.
func checkArrays(t *testing.T, document string, paths ...string) {
	t.Helper()
	var read map[string]any
	if err := json.Unmarshal([]byte(document), &read); err != nil {
		t.Fatalf("the document: %v: %.200s", err, document)
	}
	described, _ := read["paths"].(map[string]any)
	for _, path := range paths {
		if described[path] == nil {
			t.Errorf("the document lacks %s", path)
		}
	}
	arrays, vague := arraysOf(read, "")
	if len(vague) > 0 {
		t.Errorf("the document has arrays without items: %s", strings.Join(vague, ", "))
	}
	if arrays < 3 { // at least the arrays in the schemas of errors
		t.Errorf("the document has %d arrays: the test does not find them", arrays)
	}
}

// arraysOf returns how many schemas of arrays there are in a part of a document, and the places of those without items.
func arraysOf(part any, place string) (arrays int, vague []string) {
	add := func(name string, inner any) {
		n, more := arraysOf(inner, place+"/"+name)
		arrays, vague = arrays+n, append(vague, more...)
	}
	switch part := part.(type) {
	case []any:
		for _, inner := range part {
			add("-", inner)
		}
	case map[string]any:
		types, _ := part["type"].([]any)
		if part["type"] == "array" || slices.Contains(types, any("array")) {
			arrays++
			if _, ok := part["items"]; !ok {
				vague = append(vague, place)
			}
		}
		for name, inner := range part {
			switch members, _ := inner.(map[string]any); name {
			case "example", "examples", "default", "enum", "const": // values rather than schemas
			case "properties", "patternProperties", "$defs", "schemas": // members with arbitrary names
				for member, inner := range members {
					add(name+"/"+member, inner)
				}
			default:
				add(name, inner)
			}
		}
	}
	return arrays, vague
}
