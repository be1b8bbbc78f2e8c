package admin

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/toolsrv/toolsrv/internal/typed"
)

// Document returns the OpenAPI document of the operations, which are served below path.
func Document(path string) []byte {
	paths, components := map[string]any{}, map[string]json.RawMessage{"Error": json.RawMessage(errorSchema)}
	for _, o := range Operations() {
		item := map[string]any{
			"operationId": o.ID(),
			"summary":     o.Summary,
			"tags":        []string{strings.Fields(o.Name)[0]},
			"responses": map[string]any{
				"200":     response("What was asked for", o.resultSchema(components), true),
				"default": response("Why it was refused: detail is a sentence, or a list of what doesn't fit", json.RawMessage(`{"$ref":"#/components/schemas/Error"}`), false),
			},
		}
		if o.Copies() {
			item["responses"].(map[string]any)["200"] = map[string]any{"description": "The bytes", "content": map[string]any{"application/octet-stream": map[string]any{}}}
		}
		if parameters := o.documented(); len(parameters) > 0 {
			item["parameters"] = parameters
		}
		switch {
		case o.takes > 0:
			item["requestBody"] = map[string]any{"required": true, "content": map[string]any{TakenType: map[string]any{}}}
		case o.Changes():
			arguments, definitions := o.arguments().Document(o.ID() + ".arguments")
			maps.Copy(components, definitions)
			item["requestBody"] = map[string]any{"required": true, "content": inJSON(arguments)}
		}
		item["x-role"] = o.Role
		if o.Local {
			item["x-local"] = true
		}
		paths[path+o.Path()] = map[string]any{strings.ToLower(o.Method): item}
	}
	text, err := typed.Encode(map[string]any{
		"openapi":  "3.1.0",
		"info":     map[string]any{"title": "Administration of toolsrv", "version": "1", "description": "What an operator can ask of a running server. The role admin:read may look, and the role admin may change things."},
		"paths":    paths,
		"security": []any{map[string]any{"bearer": []string{}}},
		"components": map[string]any{
			"schemas":         components,
			"securitySchemes": map[string]any{"bearer": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	})
	if err != nil {
		panic("admin.Document: " + err.Error()) // can't happen, since it consists of maps, strings and schemas
	}
	return text
}

// TakenType is the media type of a body of bytes.
const TakenType = "application/octet-stream"

// ID returns the operation's name as an identifier, such as "tokens-add".
func (o *Operation) ID() string { return strings.ReplaceAll(o.Name, " ", "-") }

// errorSchema is the body of every error: see docs/http.md.
const errorSchema = `{"type":"object","properties":{"detail":{},"code":{"type":"string"},"request_id":{"type":"string"}},"required":["detail","code"]}`

func inJSON(schema json.RawMessage) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}

func response(description string, schema json.RawMessage, tagged bool) map[string]any {
	r := map[string]any{"description": description, "content": inJSON(schema)}
	if tagged {
		r["headers"] = map[string]any{"ETag": map[string]any{"description": "The version, for If-Match", "schema": map[string]any{"type": "string"}}}
	}
	return r
}

// resultSchema returns the schema of the result, and adds its definitions to the components.
func (o *Operation) resultSchema(components map[string]json.RawMessage) json.RawMessage {
	schema, definitions := o.result().Document(o.ID())
	maps.Copy(components, definitions)
	return schema
}

// documented returns the parameters of the operation: those in the query, and If-Match for a change.
func (o *Operation) documented() (all []any) {
	if o.Changes() {
		all = append(all, map[string]any{"name": "If-Match", "in": "header", "description": "The ETag that the object must have before the change", "schema": map[string]any{"type": "string"}})
	}
	if len(o.parameters) == 0 {
		return all
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(o.arguments().JSON(), &schema); err != nil {
		panic("admin: the arguments of " + o.Name + ": " + err.Error())
	}
	for _, p := range o.parameters {
		shown := map[string]any{"name": p.name, "in": "query", "schema": schema.Properties[p.name]}
		for _, name := range schema.Required {
			if name == p.name {
				shown["required"] = true
			}
		}
		all = append(all, shown)
	}
	return all
}
