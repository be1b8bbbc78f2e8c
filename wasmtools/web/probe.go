package web

import (
	"net/http"

	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// isProbe reports whether a path is a probe, which is answered without checking the dependencies.
func isProbe(path string) bool { return path == healthPath || path == readyPath }

// answerProbe answers /healthz, which says that the service runs, and /readyz, which says whether it takes calls.
func (x *Exchange) answerProbe() {
	if !x.Allow(http.MethodGet, http.MethodHead) {
		return
	}
	if x.request.URL.Path == healthPath {
		x.Send(http.StatusOK, []byte(`{"status":"ok"}`))
		return
	}
	if x.mux.ready != nil {
		if err := x.mux.ready(); err != nil {
			x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotReady, Err: err})
			return
		}
	}
	x.Send(http.StatusOK, []byte(`{"status":"ready"}`))
}
