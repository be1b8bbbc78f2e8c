package gotool_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
)

// A stay is what the tool is called with. Its tags go into the schema, as in a tool of the SDK for Go.
type stay struct {
	City   string `json:"city" description:"Where to stay." minLength:"1"`
	Nights int    `json:"nights" description:"How long." minimum:"1" maximum:"30" default:"1"`
}

// A price is the tool's result.
type price struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

func quote(_ context.Context, in stay) (price, error) {
	if in.City == "Atlantis" {
		return price{}, &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "There is no hotel in Atlantis: choose another city.", Status: http.StatusNotFound}
	}
	return price{Amount: 80 * float64(in.Nights), Currency: "EUR"}, nil
}

// A Go function becomes a tool: its schema comes from its types.
func ExampleNew() {
	hotel := gotool.New("travel/quote", "Tell what a stay in a hotel costs.", quote)
	fmt.Println(string(hotel.Parameters.JSON()))

	table, err := wasmtools.NewRouteTable(hotel)
	if err != nil {
		fmt.Println(err)
		return
	}
	app := openapi.NewApp(table, openapi.Options{Title: "Travel"})
	defer app.Close()

	// In your program: (&http.Server{Addr: "127.0.0.1:8000", Handler: app, ReadHeaderTimeout: 5 * time.Second}).ListenAndServe()
	server := httptest.NewServer(app)
	defer server.Close()
	for _, body := range []string{`{"city": "Lisbon", "nights": 3}`, `{"city": "Lisbon"}`, `{"city": "Atlantis"}`, `{"city": "Lisbon", "night": 2}`} {
		answer, err := server.Client().Post(server.URL+"/travel/quote", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, string(text), err)
	}

	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"Where to stay.","minLength":1},"nights":{"type":"integer","description":"How long.","minimum":1,"maximum":30,"default":1}},"required":["city"],"additionalProperties":false}
	// 200 {"amount":240,"currency":"EUR"} <nil>
	// 200 {"amount":80,"currency":"EUR"} <nil>
	// 404 {"detail":"There is no hotel in Atlantis: choose another city.","code":"tool_error"} <nil>
	// 422 {"detail":[{"type":"extra_forbidden","loc":["body","night"],"msg":"Extra inputs are not permitted: did you mean 'nights'?","input":2,"ctx":{"did_you_mean":"nights"}}],"code":"invalid_arguments"} <nil>
}

// A proxy is a dependency of the application: it says who calls.
type proxy struct{}

// Check lets every request in.
func (proxy) Check(*http.Request) error { return nil }

// A proxy in front has authenticated the user, and sends the name.
func (proxy) Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	user := r.Header.Get("X-User")
	if user == "" {
		return nil, &wasmtools.Error{Code: wasmtools.CodeUnauthorized}
	}
	return wasmtools.NewPrincipal(user, "proxy", "travel/*")
}

// A function that needs to know who calls it is given the call.
func ExampleNewWithCall() {
	whoami := gotool.NewWithCall("travel/whoami", "Tell who calls.",
		func(_ context.Context, call *wasmtools.Call, _ struct{}) (string, error) {
			return call.Principal.String(), nil
		})
	table, err := wasmtools.NewRouteTable(whoami)
	if err != nil {
		fmt.Println(err)
		return
	}
	app := openapi.NewApp(table, openapi.Options{Dependencies: []openapi.Dependency{proxy{}}})
	defer app.Close()
	for _, user := range []string{"alice", ""} {
		r := httptest.NewRequest(http.MethodPost, "/travel/whoami", nil)
		if user != "" {
			r.Header.Set("X-User", user)
		}
		answer := httptest.NewRecorder()
		app.ServeHTTP(answer, r)
		fmt.Println(answer.Code, answer.Body)
	}

	// Output:
	// 200 "alice"
	// 401 {"detail":"Invalid or missing bearer token","code":"unauthorized"}
}
