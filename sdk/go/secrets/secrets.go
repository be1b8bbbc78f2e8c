// Package secrets reads secrets, for tools that have to see one: to sign with it, say. The tool declares their names ([toolsrv.Needs]) and
// the operator grants them. A secret that is only sent along needs none of this: the operator makes the host add it to the requests of
// package http, and the tool never sees it.
package secrets

import (
	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/capability"
)

// Read returns a secret as it is now. Read it in each call, and don't keep it longer: it may change, and what is in a package-level
// variable is in the snapshot. Don't log it, nor put it into a result or an error. The error is a [*toolsrv.Failure].
func Read(c *toolsrv.Call, name string) ([]byte, error) {
	return capability.Secret(c, name)
}
