package clients_test

import (
	"encoding/json"
	"testing"

	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestOfficialSchema has the document of a running service, with all examples, valid by the OpenAPI Initiative's schema.
func TestOfficialSchema(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	writeExamples(t, tools)
	document := get(t, start(t, tools, "").url+"/openapi.json")
	official, err := jsonschema.CompileString("openapi.json", datamodel.OpenAPI31SchemaData)
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := json.Unmarshal(document, &parsed); err != nil {
		t.Fatal(err)
	}
	if err := official.Validate(parsed); err != nil {
		t.Errorf("not valid: %#v", err)
	}
	delete(parsed, "info")
	if official.Validate(parsed) == nil {
		t.Error("a document without info is valid: does the schema judge anything?")
	}
}
