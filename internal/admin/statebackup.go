package admin

import (
	"context"
	"io"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// stateBackup copies the state. It has what all tools keep, so it is for the server's own machine, and the audit tells who has a copy. A state that
// can't be written any more can still be copied.
func stateBackup() Operation {
	o := Copies("state backup", "Copy the state as it is now", func(ctx context.Context, r *Request, w io.Writer) error {
		_ = r.Service.Audit.Append(ctx, r.entry("state")) // an error is logged
		_, err := r.Service.State.WriteTo(w)
		if err != nil {
			return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: err.Error(), Err: err}
		}
		return nil
	})
	o.Local = true
	return o
}
