package clients_test

import (
	"encoding/json"
	"testing"

	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestOfficialSchema checks the documents of a running service with the OpenAPI Initiative's schema: the one of its tools, with all examples, and the
// one of the admin door.
func TestOfficialSchema(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	writeExamples(t, tools)
	s := start(t, tools, administered(t))
	official, err := jsonschema.CompileString("openapi.json", datamodel.OpenAPI31SchemaData)
	if err != nil {
		t.Fatal(err)
	}
	for name, document := range map[string][]byte{"tools": get(t, s.url+"/openapi.json"), "admin": getAs(t, adminToken, s.url+"/admin/v1/openapi.json")} {
		var parsed map[string]any
		if err := json.Unmarshal(document, &parsed); err != nil {
			t.Fatal(err)
		}
		if err := official.Validate(parsed); err != nil {
			t.Errorf("%s: not valid: %#v", name, err)
		}
		delete(parsed, "info")
		if official.Validate(parsed) == nil {
			t.Errorf("%s: a document without info is valid: does the schema check anything?", name)
		}
		model, err := libopenapi.NewDocument(document) // this follows references, which the schema does not
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := model.BuildV3Model(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
