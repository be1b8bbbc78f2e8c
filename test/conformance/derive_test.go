package conformance_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A judged is a derived schema with values that it accepts and refuses.
type judged struct {
	Schema            json.RawMessage
	Accepted, Refused []json.RawMessage
}

// TestDerivedSchemas validates the values of testdata/derive with their schemas: with the library, with an implementation that is not ours, and
// with the server. The SDKs' own tests check that the SDKs derive these schemas.
func TestDerivedSchemas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/derive/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 15 {
		t.Fatalf("got %d files in testdata/derive, want them all", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			var parts struct {
				Guards            string
				Languages         []string
				Arguments, Result *judged
			}
			if err := d.Decode(&parts); err != nil {
				t.Fatal(err)
			}
			for name, part := range map[string]*judged{"arguments": parts.Arguments, "result": parts.Result} {
				if part != nil {
					t.Run(name, part.check)
				}
			}
		})
	}
}

func (j *judged) check(t *testing.T) {
	ours, err := schema.Compile(j.Schema)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat, c.AssertContent = true, true
	if err := c.AddResource("schema.json", bytes.NewReader(j.Schema)); err != nil {
		t.Fatal(err)
	}
	library, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Accepted) == 0 || len(j.Refused) == 0 {
		t.Error("the file has no values to accept, or none to refuse")
	}
	for want, values := range map[bool][]json.RawMessage{true: j.Accepted, false: j.Refused} {
		for _, text := range values {
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			var v any
			if err := d.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if err := library.Validate(v); (err == nil) != want {
				t.Errorf("the library on %s: got %v, want it accepted: %t", text, err, want)
			}
			if err := (*schemas.Schema)(ours).Check(text); (err == nil) != want {
				t.Errorf("the server on %s: got %v, want it accepted: %t", text, err, want)
			}
		}
	}
}
