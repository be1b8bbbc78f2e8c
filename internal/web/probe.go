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

// A Condition is what a ready service reports about itself. The zero value reports nothing.
type Condition struct {
	// State is the condition of the state in which tools keep values. It is empty if nothing is wrong.
	State string `json:"state,omitempty"`
	// Compiled is whether all tools are compiled, so that no call has to wait for a compilation. It is nil if that is not known.
	Compiled *bool `json:"compiled,omitempty"`
}

// StateUnavailable is a Condition's State if nothing can be kept or read before a restart.
const StateUnavailable = "unavailable"

// StateCutOff is a Condition's State if NATS is unreachable: until it is back, the state is read as it was last known, and can't be changed.
const StateCutOff = "cut off"

// isProbe reports whether a path is a probe, which is answered without checking the dependencies.
func isProbe(path string) bool { return path == healthPath || path == readyPath }

// answerProbe answers /healthz, which says that the service runs, and /readyz, which says whether it accepts calls.
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
