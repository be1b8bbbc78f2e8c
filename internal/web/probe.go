package web

import (
	"encoding/json"
	"net/http"

	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// A Condition is what a ready service tells of its state. The zero value tells nothing.
type Condition struct {
	// State is how the state is in which tools keep values: empty if nothing is wrong with it.
	State string `json:"state,omitempty"`
	// Compiled is whether all tools are compiled, so that no call waits for that; nil if that is not known.
	Compiled *bool `json:"compiled,omitempty"`
}

// StateUnavailable is a Condition's State where nothing can be kept or read until the server is started again.
const StateUnavailable = "unavailable"

// StateCutOff is a Condition's State where the state is read as it was last known, and can't be changed, until NATS is back.
const StateCutOff = "cut off"

// isProbe reports whether a path is a probe, which is answered without checking the dependencies.
func isProbe(path string) bool { return path == healthPath || path == readyPath }

// answerProbe answers /healthz, which says that the service runs, and /readyz, which says whether it takes calls.
func answerProbe(x *Exchange) {
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
	answer := struct {
		Status string `json:"status"`
		Condition
	}{Status: "ready"}
	if x.mux.condition != nil {
		answer.Condition = x.mux.condition()
	}
	body, err := json.Marshal(answer)
	if err != nil {
		x.Fail(err)
		return
	}
	x.Send(http.StatusOK, body)
}
