package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/door"
	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// attempts is an observer that records in the audit each refused attempt to change the server, wherever it was
// refused.
type attempts struct{ audit *audit.Log }

var _ web.Observer = attempts{}

// Answered records an attempt.
func (a attempts) Answered(answer *web.Answer) {
	failed := answer.Error()
	if failed == nil || answer.Door() != door.Path || answer.Request().Method != http.MethodPost {
		return
	}
	switch failed.Code {
	case wasmtools.CodeUnauthorized, wasmtools.CodeForbidden, wasmtools.CodeHostNotAllowed, wasmtools.CodeOriginNotAllowed:
	default:
		return // the attempt was not refused but failed; an operation that had begun records the failure itself
	}
	e := audit.Entry{
		Action:    credential.Mask(admin.ActionOf(strings.TrimPrefix(answer.Request().URL.Path, door.Path))),
		From:      "socket",
		RequestID: answer.RequestID(),
		Refused:   string(failed.Code) + ": " + failed.Message,
	}
	if client := answer.Client(); client.IsValid() {
		e.From = client.String()
	}
	if p := answer.Principal(); p != nil && p.Origin() != wasmtools.OriginOpen {
		e.Who, e.Origin, e.Caller = p.String(), p.Origin(), string(personal.Apart(p))
	}
	a.audit.Refuse(context.Background(), e)
}

// reloading calls apply, which puts a configuration in force, and adds an audit entry with the changes.
func reloading(log *audit.Log, what difference, apply func() error) error {
	after := what.json()
	if after == nil {
		return apply()
	}
	e := audit.Entry{Action: reloadAction, Origin: wasmtools.OriginProcess, After: after}
	return log.Change(context.Background(), e, func(context.Context) error { return apply() })
}

// refusedReload records that a configuration was not put in force.
func refusedReload(log *audit.Log, err error) {
	log.Refuse(context.Background(), audit.Entry{Action: reloadAction, Origin: wasmtools.OriginProcess, Refused: err.Error()})
}

const reloadAction = "reload"

// json returns the changes as an object, or nil if there are none.
func (d difference) json() json.RawMessage {
	if len(d) == 0 {
		return nil
	}
	object := make(map[string][]string, len(d))
	for _, c := range d {
		object[c.kind] = c.all
	}
	text, _ := json.Marshal(object) // strings can always be encoded
	return text
}
