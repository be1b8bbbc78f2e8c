package web

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// CheckType returns an error if a request's Content-Type is not JSON in UTF-8. A missing one is wrong, too: a page of another site can make a browser
// send a body without a type, as text/plain or as a form, but not as JSON.
func CheckType(h http.Header) error {
	values := h["Content-Type"]
	if len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	unsupported := func(what string) error {
		return &wasmtools.Error{Code: wasmtools.CodeUnsupportedMediaType, Message: what + "; send Content-Type: application/json"}
	}
	switch len(values) {
	case 0:
		return unsupported("The body has no Content-Type")
	case 1:
	default:
		return unsupported("There is more than one Content-Type")
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	if err != nil {
		return unsupported("The Content-Type cannot be read")
	}
	kind, isApplication := strings.CutPrefix(media, "application/")
	if !isApplication || (kind != "json" && (!strings.HasSuffix(kind, "+json") || kind == "+json")) {
		return unsupported(fmt.Sprintf("The body is %q", text.Clip(media, 80)))
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return unsupported(fmt.Sprintf("The body's charset is %q, not utf-8", text.Clip(charset, 80)))
	}
	return nil
}

// CheckEncoding returns an error if a request's body is encoded, for example compressed. The error is an *wasmtools.Error.
func CheckEncoding(h http.Header) error {
	for _, value := range h["Content-Encoding"] {
		if value != "" && !strings.EqualFold(value, "identity") {
			return &wasmtools.Error{
				Code:    wasmtools.CodeUnsupportedMediaType,
				Message: fmt.Sprintf("The body has the Content-Encoding %q; send it uncompressed", text.Clip(value, 80)),
			}
		}
	}
	return nil
}
