package clients_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	_ "github.com/oapi-codegen/runtime" // the generated client imports it
)

// orderSchema has the things that Go clients stumble over: a recursive definition, a reference, an enumeration, a nullable member, a format, and a
// nested default.
const orderSchema = `{
	"type": "object",
	"$defs": {
		"item": {
			"type": "object",
			"properties": {
				"name": {"type": "string", "minLength": 1},
				"count": {"type": "integer", "minimum": 1, "default": 1},
				"parts": {"type": "array", "items": {"$ref": "#/$defs/item"}}
			},
			"required": ["name"],
			"additionalProperties": false
		}
	},
	"properties": {
		"items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
		"currency": {"type": "string", "enum": ["EUR", "USD"], "default": "EUR"},
		"note": {"type": ["string", "null"]},
		"due": {"type": "string", "format": "date-time"}
	},
	"required": ["items"]
}`

// TestGoClient generates a Go client from the document of a running service, compiles it, and has it call tools that
// run in the sandbox: testdata/call/main.go says what it expects.
func TestGoClient(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	writeExamples(t, tools)
	write(t, tools, "shop", echo("order", orderSchema),
		tool{Name: "refuse", Description: "Refuse with a status and data.", Parameters: json.RawMessage(`{"type":"object"}`)})
	s := start(t, tools, "")

	runGenerated(t, get(t, s.url+"/openapi.json"), "./testdata/call", token, s.url)
}

// TestNamespaceClient generates a client from the document of one namespace, and calls the one tool that its caller may call:
// testdata/namespace/main.go says what it expects. The document says nothing about the namespace's other tool or about other namespaces.
func TestNamespaceClient(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	told := func(name, description string) tool {
		made := echo(name, orderSchema)
		made.Description = description
		return made
	}
	write(t, tools, "shop", told("order", "Return the order."), told("unlatch", "Open the back door."))
	write(t, tools, "shop/cellar", told("unlock", "Open the cellar."))
	write(t, tools, "shopping", told("list", "Say what is wanted."))
	write(t, tools, "vault", told("unlock", "Open the vault."))
	const buyer = "a-token-of-a-buyer"
	s := start(t, tools, fmt.Sprintf("[[auth.token]]\nname = 'buyer'\nsha256 = '%x'\nscopes = ['shop/order', 'vault/unlock']\n", sha256.Sum256([]byte(buyer))))

	document := getAs(t, buyer, s.url+"/shop/openapi.json")
	var said struct {
		Paths map[string]json.RawMessage
	}
	if err := json.Unmarshal(document, &said); err != nil {
		t.Fatal(err)
	}
	if paths := slices.Collect(maps.Keys(said.Paths)); !slices.Equal(paths, []string{"/shop/order"}) {
		t.Errorf("the buyer's document has the paths %q", paths)
	}
	others := regexp.MustCompile("(?i)unlatch|back door|cellar|shopping|vault|unlock")
	if found := others.FindAll(document, -1); found != nil {
		t.Errorf("the buyer's document mentions other tools: %q", found)
	}
	if whole := get(t, s.url+"/openapi.json"); len(others.FindAll(whole, -1)) < 6 {
		t.Errorf("the whole document has none of these tools, so the test can't tell whether they are left out:\n%s", whole)
	}
	runGenerated(t, document, "./testdata/namespace", buyer, s.url)
}

// TestAdminClient administers a running service with a client that is generated from the document of the admin door: testdata/administer/main.go says
// what it expects.
func TestAdminClient(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	write(t, tools, "shop", echo("order", orderSchema))
	s := start(t, tools, administered(t))
	runGenerated(t, getAs(t, adminToken, s.url+"/admin/v1/openapi.json"), "./testdata/administer", adminToken, s.url)
}

// runGenerated generates a client from a document, and runs the program in a folder with it.
func runGenerated(t *testing.T, text []byte, program, token, url string) {
	t.Helper()
	dir := t.TempDir()
	document := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(document, text, 0o600); err != nil {
		t.Fatal(err)
	}
	code := filepath.Join(dir, "api.go")
	if out, err := run(t, time.Minute, ".", nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", code, document); err != nil {
		t.Fatalf("generate a client: %v\n%s", err, out)
	}
	// The overlay lets the program import a package that is not in the repository.
	module, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, "testdata", "api", "api.go"): code}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, 2*time.Minute, ".", []string{"TOKEN=" + token}, "go", "run", "-overlay", overlayFile, program, url); err != nil {
		t.Errorf("%s: %v\n%s", program, err, out)
	}
}
