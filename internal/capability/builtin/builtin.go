// Package builtin lists the capabilities that every server has.
package builtin

import (
	"github.com/toolsrv/toolsrv/internal/capability/files"
	"github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/capability/settings"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// Kinds returns them, in the order in which they are told.
func Kinds() []capability.Kind {
	return []capability.Kind{http.Kind(), kv.Kind(), secrets.Kind(), settings.Kind(), tools.Kind(), files.Kind()}
}

// Needs returns what manifests may say of them.
func Needs() (forms []wasmtools.NeedForm) {
	for _, k := range Kinds() {
		forms = append(forms, k.Need())
	}
	return forms
}
