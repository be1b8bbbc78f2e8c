package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/wasmtools"
)

type asked struct {
	Name  string   `json:"name" description:"A name."`
	Deep  bool     `json:"deep,omitempty" description:"Deep."`
	Most  int      `json:"most,omitempty" description:"A number." minimum:"1"`
	Words []string `json:"words,omitempty" description:"Words."`
}

func person(t *testing.T, origin string, roles ...string) *wasmtools.Principal {
	t.Helper()
	p, err := wasmtools.NewPrincipal("ann", origin, "*")
	if err != nil {
		t.Fatal(err)
	}
	if p, err = p.WithRoles(roles...); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRun runs operations as doors do, with and without the role.
func TestRun(t *testing.T) {
	t.Parallel()
	echo := func(_ context.Context, r *admin.Request, in asked) (asked, error) { return in, r.Expect("7") }
	look, change := admin.Looks("look", "Look", echo), admin.Changes("change", "Change", echo)
	local := look
	local.Local = true
	reads, all := person(t, "token", wasmtools.RoleAdminRead), person(t, "token", wasmtools.RoleAdmin)
	for name, c := range map[string]struct {
		operation admin.Operation
		who       *wasmtools.Principal
		expected  string
		arguments string
		code      wasmtools.Code
		want      string
	}{
		"a reader looks":              {look, reads, "", `{"name":"a"}`, "", `{"name":"a"}`},
		"an administrator looks":      {look, all, "", `{"name":"a","most":3,"words":["x"]}`, "", `{"name":"a","most":3,"words":["x"]}`},
		"a reader changes":            {change, reads, "", `{"name":"a"}`, wasmtools.CodeForbidden, ""},
		"an administrator changes":    {change, all, "", `{"name":"a"}`, "", `{"name":"a"}`},
		"every tool, no role":         {look, person(t, "token"), "", `{"name":"a"}`, wasmtools.CodeForbidden, ""},
		"scopes that look like roles": {change, person(t, "token", "Admin", "admin:read:all", "administrator"), "", `{"name":"a"}`, wasmtools.CodeForbidden, ""},
		"everybody":                   {look, wasmtools.Everybody(), "", `{"name":"a"}`, wasmtools.CodeUnauthorized, ""},
		"nobody":                      {look, wasmtools.Nobody(), "", `{"name":"a"}`, wasmtools.CodeUnauthorized, ""},
		"nil":                         {look, nil, "", `{"name":"a"}`, wasmtools.CodeUnauthorized, ""},
		"the zero principal":          {look, &wasmtools.Principal{}, "", `{"name":"a"}`, wasmtools.CodeUnauthorized, ""},
		"an open door with a role":    {look, person(t, wasmtools.OriginOpen, wasmtools.RoleAdmin), "", `{"name":"a"}`, wasmtools.CodeUnauthorized, ""},
		"the current version":         {change, all, "7", `{"name":"a"}`, "", `{"name":"a"}`},
		"another version":             {change, all, "6", `{"name":"a"}`, wasmtools.CodeChanged, ""},
		"local, from elsewhere":       {local, all, "", `{"name":"a"}`, wasmtools.CodeForbidden, ""},
		"nothing":                     {look, reads, "", ``, wasmtools.CodeInvalidArguments, ""},
		"not an object":               {look, reads, "", `[]`, wasmtools.CodeInvalidArguments, ""},
		"not JSON":                    {look, reads, "", `{"name":`, wasmtools.CodeInvalidArguments, ""},
		"two objects":                 {look, reads, "", `{"name":"a"}{}`, wasmtools.CodeInvalidArguments, ""},
		"an unknown member":           {look, reads, "", `{"name":"a","x":1}`, wasmtools.CodeInvalidArguments, ""},
		"another case":                {look, reads, "", `{"Name":"a"}`, wasmtools.CodeInvalidArguments, ""},
		"a name twice":                {look, reads, "", `{"name":"a","name":"b"}`, wasmtools.CodeInvalidArguments, ""},
		"a number that is too low":    {look, reads, "", `{"name":"a","most":0}`, wasmtools.CodeInvalidArguments, ""},
		"a number that is too high":   {look, reads, "", `{"name":"a","most":1e300}`, wasmtools.CodeInvalidArguments, ""},
		"deep":                        {look, reads, "", `{"name":` + string(bytes.Repeat([]byte("["), 100_000)), wasmtools.CodeInvalidArguments, ""},
	} {
		r := &admin.Request{Principal: c.who, Expected: c.expected}
		got, err := c.operation.Run(t.Context(), r, []byte(c.arguments))
		failed, _ := errors.AsType[*wasmtools.Error](err)
		switch {
		case c.code == "" && (err != nil || string(got) != c.want):
			t.Errorf("%s: got %s, %v", name, got, err)
		case c.code != "" && (failed == nil || failed.Code != c.code || got != nil):
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.code)
		}
	}
}

// TestQuery converts arguments to a query and back, and refuses odd ones.
func TestQuery(t *testing.T) {
	t.Parallel()
	look := admin.Looks("look", "Look", func(_ context.Context, _ *admin.Request, in asked) (asked, error) { return in, nil })
	r := &admin.Request{Principal: person(t, "token", wasmtools.RoleAdminRead)}
	for _, arguments := range []string{
		`{"name":"a"}`, `{"name":"true"}`, `{"name":"1"}`, `{"name":""}`, `{"name":"a","deep":true}`, `{"name":"ü&=%\u0000","most":12}`,
		`{"name":"a","words":["x"]}`, `{"name":"a","words":["x","","[]"]}`,
	} {
		query, err := look.Query([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		again, err := url.ParseQuery(query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		object, err := look.Arguments(again)
		if err != nil {
			t.Fatal(err)
		}
		got, err := look.Run(t.Context(), r, object)
		var want asked
		_ = json.Unmarshal([]byte(arguments), &want)
		var is asked
		_ = json.Unmarshal(got, &is)
		if a, b := mustEncode(t, want), mustEncode(t, is); err != nil || a != b {
			t.Errorf("%s as %s: got %s, %v", arguments, query.Encode(), got, err)
		}
	}
	for _, query := range []string{"", "name=a&name=b", "name=a&deep=yes", "name=a&deep=", "name=a&most=x", "name=a&most=1.5", "name=a&most=99999999999999999999", "name=a&x=1", "NAME=a", "name=a&most=0"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		object, err := look.Arguments(values)
		if err == nil {
			_, err = look.Run(t.Context(), r, object)
		}
		if failed, ok := errors.AsType[*wasmtools.Error](err); !ok || failed.Code != wasmtools.CodeInvalidArguments {
			t.Errorf("%q: got %v", query, err)
		}
	}
}

func mustEncode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOperations checks the table: names differ, changes require the role for them, and everything has a description.
func TestOperations(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z]+( [a-z]+)?$`)
	known := map[string]bool{}
	for _, o := range admin.Operations() {
		if !name.MatchString(o.Name) || known[o.Name] {
			t.Errorf("the name %q is not valid, or is taken", o.Name)
		}
		known[o.Name] = true
		if o.Summary == "" {
			t.Errorf("%s has no summary", o.Name)
		}
		own := []string{"tokens attenuate", "secrets set", "secrets remove"} // a caller changes only what is its own
		if o.Changes() && o.Role != wasmtools.RoleAdmin && !slices.Contains(own, o.Name) {
			t.Errorf("%s changes something, and asks for the role %q", o.Name, o.Role)
		}
		if admin.Find(o.Name).Path() != o.Path() {
			t.Errorf("%s is not found", o.Name)
		}
	}
}

// TestDocument checks that the document is JSON, that its references resolve, and that its schemas can be compiled.
func TestDocument(t *testing.T) {
	t.Parallel()
	text := admin.Document("/admin/v1")
	var d struct {
		OpenAPI    string
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(text, &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("got %v, %s", err, d.OpenAPI)
	}
	for _, match := range regexp.MustCompile(`"\$ref":"#/components/schemas/([^"]*)"`).FindAllSubmatch(text, -1) {
		if d.Components.Schemas[string(match[1])] == nil {
			t.Errorf("nothing is at %s", match[0])
		}
	}
	for name := range d.Components.Schemas {
		whole := mustEncode(t, map[string]any{"$ref": "#/components/schemas/" + name, "components": d.Components})
		if _, err := schemas.Compile(json.RawMessage(regexp.MustCompile(`"Schemas"`).ReplaceAllString(whole, `"schemas"`))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
