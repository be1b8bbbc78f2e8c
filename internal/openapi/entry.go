package openapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An entry is what a tool adds to the documents. It is made once, and kept as long as the table has the tool.
type entry struct {
	tool  *wasmtools.Tool
	path  string
	media string // media type of a result that is a file in base64, or empty

	listing fragment // an element of /tools
	item    fragment // a member of the document's paths, without the responses that all tools have
	schemas fragment // members of the document's components.schemas; may be empty
}

// A fragment is a piece of a document, with its hash. A document's ETag is made from the hashes of its fragments, so that switching a tool does not
// require hashing all bytes again.
type fragment struct {
	text []byte
	sum  [sha256.Size]byte
}

func newFragment(text []byte) fragment { return fragment{text: text, sum: sha256.Sum256(text)} }

// listing is an element of /tools.
type listing struct {
	Name        string                `json:"name"`
	Namespace   string                `json:"namespace"`
	Path        string                `json:"path"`
	Method      string                `json:"method"`
	OperationID string                `json:"operation_id"`
	Title       string                `json:"title,omitempty"`
	Description string                `json:"description"`
	Annotations wasmtools.Annotations `json:"annotations,omitzero"`
	Icons       []wasmtools.Icon      `json:"icons,omitempty"`
	Parameters  json.RawMessage       `json:"parameters"`
	Result      json.RawMessage       `json:"result"` // null if the tool declares none
	Version     string                `json:"version"`
	Digest      string                `json:"digest"`
	Fingerprint string                `json:"fingerprint"`
}

type pathItem struct {
	Post operation `json:"post"`
}

// operation has its responses at the end, but only the successful one. security.failures writes the others after it.
type operation struct {
	OperationID string                `json:"operationId"`
	Tags        []string              `json:"tags,omitempty"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	Annotations wasmtools.Annotations `json:"x-annotations,omitzero"`
	Icons       []wasmtools.Icon      `json:"x-icons,omitempty"`
	Fingerprint string                `json:"x-fingerprint"`
	RequestBody content               `json:"requestBody"`
	Responses   struct {
		Result content `json:"200"`
	} `json:"responses"`
}

// itemEnd is what follows the responses in a path item.
const itemEnd = "}}"

// content is a request body or a response.
type content struct {
	Description string               `json:"description,omitempty"`
	Required    bool                 `json:"required,omitempty"`
	Content     map[string]mediaType `json:"content"`
}

type mediaType struct {
	Schema   json.RawMessage    `json:"schema"`
	Examples map[string]example `json:"examples,omitempty"`
}

type example struct {
	Value json.RawMessage `json:"value"`
}

// binary is the schema of a file. OpenAPI 3.1 needs none, but generators of clients make bytes only of a schema with this format.
var binary = json.RawMessage(`{"type":"string","format":"binary"}`)

// newEntry describes a tool. Examples that are not JSON are left out and logged: one tool must not spoil the documents of all others.
func (d *Door) newEntry(tool *wasmtools.Tool) *entry {
	path, id := tool.Path(), tool.OperationID()
	report := func(problem string) {
		d.log.Warn("a tool is described only in part", slog.String("path", path), slog.String("problem", problem))
	}
	checked := func(text json.RawMessage, what string) json.RawMessage {
		if !isJSON(text) {
			report(what + " is not JSON")
			return json.RawMessage("{}")
		}
		return text
	}

	shown := listing{
		Name: tool.Name, Namespace: tool.Namespace, Path: path, Method: "POST", OperationID: id,
		Title: tool.Title, Description: tool.Description, Annotations: tool.Annotations, Icons: tool.Icons,
		Version: tool.Version, Digest: tool.Digest, Fingerprint: tool.Fingerprint(),
		Parameters: tool.Parameters.JSON(),
	}
	op := operation{
		OperationID: id, Summary: cmp.Or(tool.Title, tool.Name), Description: tool.Description,
		Annotations: tool.Annotations, Icons: tool.Icons, Fingerprint: shown.Fingerprint,
	}
	if tool.Namespace != "" {
		op.Tags = []string{tool.Namespace}
	}

	parameters, definitions := (*schemas.Schema)(tool.Parameters).Document(id)
	components := map[string]json.RawMessage{}
	maps.Copy(components, definitions)
	result, media := json.RawMessage("{}"), ""
	if tool.Result != nil {
		media = mediaOf((*schemas.Schema)(tool.Result))
		shown.Result = tool.Result.JSON()
		result, definitions = (*schemas.Schema)(tool.Result).Document(resultPrefix(id, components))
		maps.Copy(components, definitions)
	}

	arguments, results := map[string]example{}, map[string]example{}
	for i, e := range tool.Examples {
		name := "example" + strconv.Itoa(i+1)
		if len(e.Arguments) > 0 {
			arguments[name] = example{checked(e.Arguments, "arguments of "+name)}
		}
		if len(e.Result) > 0 {
			results[name] = example{checked(e.Result, "result of "+name)}
		}
	}
	op.RequestBody = content{Required: needsBody((*schemas.Schema)(tool.Parameters)), Content: inJSON(parameters, arguments)}
	op.Responses.Result = content{Description: "The tool's result", Content: inJSON(result, results)}
	if media != "" {
		op.Responses.Result.Content[media] = mediaType{Schema: binary}
	}
	item := member(path, mustEncode(pathItem{Post: op}))

	return &entry{
		tool: tool, path: path, media: media,
		listing: newFragment(mustEncode(shown)),
		item:    newFragment(bytes.TrimSuffix(item, []byte("}"+itemEnd))),
		schemas: newFragment(members(components)),
	}
}

// needsBody reports whether a call must have a body: an empty body means {}, which the schema may refuse. If that can't be found out quickly,
// needsBody returns true, and each call checks the schema again. It must be quick because a file may have a thousand tools, and all others wait while
// they are described.
func needsBody(s *schemas.Schema) bool {
	_, ok, err := s.ValidateLittle(nil)
	return err != nil || !ok
}

func inJSON(shown json.RawMessage, examples map[string]example) map[string]mediaType {
	return map[string]mediaType{"application/json": {Schema: shown, Examples: examples}}
}

// resultPrefix returns the prefix for the names of a result's definitions. If a definition of the parameters already has such a name
// ("math-add.result.X"), the prefix is extended until no name is taken. Operation ids have no dot, so names of two
// tools can't be equal.
func resultPrefix(id string, taken map[string]json.RawMessage) string {
	prefix := id + ".result"
	for range len(taken) + 1 {
		inUse := slices.ContainsFunc(slices.Collect(maps.Keys(taken)), func(name string) bool { return strings.HasPrefix(name, prefix+".") })
		if !inUse {
			break
		}
		prefix += "_"
	}
	return prefix
}

func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// members returns the members of an object without its braces, sorted by name.
func members(of map[string]json.RawMessage) []byte {
	var parts [][]byte
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, member(name, mustEncode(of[name])))
	}
	return bytes.Join(parts, []byte(","))
}

func member(name string, value []byte) []byte {
	return slices.Concat(mustEncode(name), []byte(":"), value)
}

// mustEncode encodes values that consist of strings, maps and valid JSON.
func mustEncode(v any) []byte {
	text, err := web.JSON(v)
	if err != nil {
		panic(fmt.Sprintf("openapi: encode %T: %v", v, err))
	}
	return text
}
