package openapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A Go program serves functions of its own as tools. No wasm is involved.
func ExampleNewApp() {
	greet := &wasmtools.Tool{
		Namespace:   "demo",
		Name:        "greet",
		Description: "Greet somebody by name.",
		Parameters: schema.MustCompile(`{
			"type": "object",
			"properties": {"name": {"type": "string", "minLength": 1}, "greeting": {"type": "string", "default": "Hello"}},
			"required": ["name"]
		}`),
		Caller: wasmtools.CallerFunc(func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
			var in struct{ Greeting, Name string }
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return nil, err
			}
			if in.Name == "nobody" {
				return nil, &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "There is nobody to greet", Status: http.StatusConflict}
			}
			return json.Marshal(in.Greeting + ", " + in.Name + "!")
		}),
	}
	table, err := wasmtools.NewRouteTable(greet)
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := auth.NewBearerTokenAuth([]string{"a-token-for-the-example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	app := openapi.NewApp(table, openapi.Options{
		Title:        "Greetings",
		Version:      "1.0.0",
		Dependencies: []openapi.Dependency{auth.Dependency(tokens)},
	})
	defer app.Close()

	// In your program: (&http.Server{Addr: "127.0.0.1:8000", Handler: app, ReadHeaderTimeout: 5 * time.Second}).ListenAndServe()
	server := httptest.NewServer(app)
	defer server.Close()

	call := func(token, body string) {
		r, err := http.NewRequest(http.MethodPost, server.URL+"/demo/greet", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := server.Client().Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		fmt.Println(answer.StatusCode, string(text), err)
	}
	call("a-token-for-the-example", `{"name": "Ada"}`)
	call("a-token-for-the-example", `{"name": "nobody"}`)
	call("a-token-for-the-example", `{"name": ""}`)
	call("a wrong one", `{"name": "Ada"}`)
	if err := table.Disable("/demo", "closed for lunch"); err != nil {
		fmt.Println(err)
	}
	call("a-token-for-the-example", `{"name": "Ada"}`)

	// Output:
	// 200 "Hello, Ada!" <nil>
	// 409 {"detail":"There is nobody to greet","code":"tool_error"} <nil>
	// 422 {"detail":[{"type":"string_too_short","loc":["body","name"],"msg":"String should have at least 1 character","input":"","ctx":{"min_length":1}}],"code":"invalid_arguments"} <nil>
	// 401 {"detail":"Invalid or missing bearer token","code":"unauthorized"} <nil>
	// 503 {"detail":"Tool /demo/greet is disabled: closed for lunch","code":"tool_disabled"} <nil>
}
