package console

import (
	"net/http"
	"slices"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An index answers for the path / with a page, or with JSON for programs.
type index struct {
	policy
	page func() *web.Document // nil if there are no pages
	body []byte
}

// newIndex returns what programs are told.
func newIndex(o *Options) []byte {
	type link struct {
		Href string `json:"href"`
	}
	told := struct {
		Title       string          `json:"title"`
		Version     string          `json:"version"`
		Description string          `json:"description,omitempty"`
		Links       map[string]link `json:"links"`
	}{o.Title, o.Version, o.Description, map[string]link{"tools": {o.Address + "/tools"}, "openapi": {o.Address + "/openapi.json"}}}
	if o.MCP {
		told.Links["mcp"] = link{o.Address + "/mcp"}
	}
	if !o.Hidden {
		told.Links["docs"] = link{o.Address + "/docs"}
		told.Links["console"] = link{o.Address + "/console"}
	}
	body, err := web.JSON(told)
	if err != nil {
		panic("console: " + err.Error()) // strings can always be encoded
	}
	return append(body, '\n')
}

// Serve answers one request.
func (d *index) Serve(x *web.Exchange) {
	h := x.Header()
	if d.page != nil {
		h["Vary"] = append(slices.Clip(h["Vary"]), "Accept")
		if web.Prefers(x.Request().Header["Accept"], "text/html") {
			send(x, d.page())
			return
		}
	}
	secure(h)
	switch {
	case !x.Allow(http.MethodGet, http.MethodHead):
	case x.Call().Principal == wasmtools.Nobody():
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeUnauthorized})
	default:
		x.Send(http.StatusOK, d.body)
	}
}
