package admin

import (
	"context"
	"io"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// stateBackup copies the state. A copy contains the values of all tools, so only callers on the server's own machine get one, and the audit says who.
// A state that can no longer be written can still be copied.
func stateBackup() Operation {
	o := Copies("state backup", "Copy the state as it is now", func(ctx context.Context, r *Request, w io.Writer) error {
		_ = r.Service.Audit.Append(ctx, r.entry("state")) // an error has been logged
		_, err := r.Service.State.WriteTo(w)
		if err != nil {
			return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: err.Error(), Err: err}
		}
		return nil
	})
	o.Local = true
	return o
}
