package wasmtools_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
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
func ExampleNewTool() {
	hotel := wasmtools.NewTool("travel/quote", "Tell what a stay in a hotel costs.", quote)
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
