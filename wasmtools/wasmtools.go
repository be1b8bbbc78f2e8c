// Package wasmtools is the domain of the tool service: what a tool is, what its file declares, which tools are
// served, and how a call fails.
//
// It has no sandbox, no HTTP router and no file system. A [Tool] is called through its [Caller], checks its
// arguments by its schema, and is served from a [RouteTable]; other packages provide the Caller and the
// schema for modules, and package gotool does so for functions of a program.
package wasmtools

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A Tool is one function that clients can call. It never changes once a RouteTable holds it.
type Tool struct {
	// Namespace is one or more names joined by "/", or empty at the top level.
	Namespace string
	// Name is 1 to 64 of the characters A-Z a-z 0-9 _ and -.
	Name string
	// Title is the tool's name for people, such as "Add two numbers", or empty: then people see Name.
	Title string
	// Description says in prose what the tool does; agents choose tools by it.
	Description string
	// Annotations are the author's hints about what the tool does.
	Annotations Annotations
	// Icons are pictures that clients may show beside the tool.
	Icons []Icon
	// Version is the module's version as its author wrote it, or empty.
	Version string
	// Parameters is the schema of the arguments, an object schema.
	Parameters *schema.Schema
	// Result is the schema of the result, or nil if the tool declares none. It is documentation; results
	// are not checked against it.
	Result *schema.Schema
	// Examples are calls with their expected results, for documentation and for tests of the tool.
	Examples []Example
	// Digest is the SHA-256 of the module's file in lower-case hexadecimal, or empty for a tool that has no file.
	Digest string
	// Source names where the tool comes from, for error messages: a file's path, or empty.
	Source string
	// Needs are what the tool wants to reach outside its sandbox.
	Needs Needs
	// Missing are the Needs that the tool was not granted. A tool that lacks something is in no list, and can't be called.
	Missing []Missing
	// MaxInput is the largest body of a call in bytes; 0 means DefaultMaxInput.
	MaxInput int64
	// Caller runs the tool.
	Caller Caller
}

// DefaultMaxInput is the largest body, in bytes, of a call to a tool without its own limit: 1 MiB.
const DefaultMaxInput = 1 << 20

// An Example is one call of a tool with the result that it should have.
type Example struct {
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// Path returns the path under which the tool is served, such as "/math/add".
func (t *Tool) Path() string {
	if t.Namespace == "" {
		return "/" + t.Name
	}
	return "/" + t.Namespace + "/" + t.Name
}

// OperationID returns the tool's name in the OpenAPI document, such as "math-add".
func (t *Tool) OperationID() string {
	if t.Namespace == "" {
		return t.Name
	}
	return strings.ReplaceAll(t.Namespace, "/", "-") + "-" + t.Name
}

// Fingerprint returns the SHA-256, in lower-case hexadecimal, of everything that clients see of the tool: its path, title, description,
// annotations, icons and examples, and the schemas of its arguments and of its result, without regard to white space between the parts of
// JSON. With it, a client that has approved a tool knows that what it sees is still the same. The fingerprint does not cover the tool's
// code, version and limits. For the code, see Digest, which covers the module's file.
func (t *Tool) Fingerprint() string {
	shown := struct {
		Path        string
		Title       string
		Description string
		Annotations Annotations
		Icons       []Icon
		Parameters  json.RawMessage
		Result      json.RawMessage
		Examples    []Example
	}{Path: t.Path(), Title: t.Title, Description: t.Description, Annotations: t.Annotations, Icons: t.Icons, Examples: t.Examples}
	if t.Parameters != nil {
		shown.Parameters = t.Parameters.JSON()
	}
	if t.Result != nil {
		shown.Result = t.Result.JSON()
	}
	text, err := json.Marshal(shown)
	if err != nil { // an example is not JSON, so no client sees it
		shown.Examples = nil
		text, _ = json.Marshal(shown) // schemas are JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
