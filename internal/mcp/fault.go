package mcp

import (
	"encoding/json"
	"net/http"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// statusOf returns the HTTP status for a fault. An unknown tool is not a fault of the message, so its status is 200.
func statusOf(f *rpc.Fault) int {
	if f.Code == rpc.CodeMethodNotFound {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// faultOf returns an error of the service as a fault, with its HTTP status. Its data has the service's code and, for an internal error, the request
// id.
func faultOf(e *wasmtools.Error, requestID string) (status int, f *rpc.Fault) {
	status, detail := web.Describe(e)
	f = &rpc.Fault{Code: rpc.CodeInternal, Message: detail}
	switch e.Code {
	case wasmtools.CodeInvalidArguments: // the body could not be read
		status, f.Code = http.StatusBadRequest, rpc.CodeParse
		if len(e.Violations) > 0 {
			f.Message = e.Violations[0].Msg
		}
	case wasmtools.CodeInputTooLarge, wasmtools.CodeUnsupportedMediaType, wasmtools.CodeRequestTimeout, wasmtools.CodeMethodNotAllowed:
		f.Code = rpc.CodeInvalidRequest
	}
	data := struct {
		Code      wasmtools.Code `json:"code"`
		RequestID string         `json:"request_id,omitempty"`
	}{Code: e.Code}
	if e.Code == wasmtools.CodeInternal {
		data.RequestID = requestID
	}
	f.Data, _ = json.Marshal(data)
	return status, f
}
