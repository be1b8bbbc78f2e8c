package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A program lists the names by which clients reach it, and the origins whose pages may call its tools.
func ExampleNewAccess() {
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		fmt.Println(err)
		return
	}
	access, err := web.NewAccess(web.AccessOptions{Hosts: []string{"tools.example.com"}, Origins: []string{"https://app.example.com"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	app := openapi.NewApp(table, openapi.Options{Access: access})
	defer app.Close()

	for _, request := range []struct{ url, page string }{
		{"https://tools.example.com/tools", "https://app.example.com"},
		{"https://tools.example.com/tools", "https://evil.example"},
		{"https://evil.example/tools", "https://evil.example"}, // whose domain name leads to the address of the program
	} {
		r := httptest.NewRequest(http.MethodGet, request.url, nil)
		r.Header.Set("Origin", request.page)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}

	// Output:
	// 200 []
	// 403 {"detail":"The origin \"https://evil.example\" is not allowed here; the operator of the server can add it to server.cors_origins","code":"origin_not_allowed"}
	// 421 {"detail":"The host \"evil.example\" is not allowed here; the operator of the server can add it to server.hosts","code":"host_not_allowed"}
}
