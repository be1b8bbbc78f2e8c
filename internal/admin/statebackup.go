package admin

import (
	"context"
	"io"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// stateBackup copies the state. It has what all tools keep, so it is for the server's own machine.
func stateBackup() Operation {
	o := Copies("state backup", "Copy the state as it is at this moment", func(_ context.Context, r *Request, w io.Writer) error {
		_, err := r.Service.State.WriteTo(w)
		if err != nil {
			return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: err.Error(), Err: err}
		}
		return nil
	})
	o.Local = true
	return o
}
