// Package builtin lists the capabilities that every server has.
package builtin

import (
	"github.com/toolsrv/toolsrv/internal/capability/files"
	"github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/capability/settings"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// Kinds returns the capabilities that every server has, in the order of messages.
func Kinds() []capability.Kind {
	return []capability.Kind{http.Kind(), kv.Kind(), secrets.Kind(), settings.Kind(), tools.Kind(), files.Kind()}
}

// With returns the capabilities that every server has, followed by those of a program.
func With(own []capability.Kind) []capability.Kind { return append(Kinds(), own...) }

// Needs returns the forms of the needs that manifests may declare.
func Needs() (forms []manifest.Form) {
	for _, k := range Kinds() {
		forms = append(forms, manifest.Form{Name: k.Name, Word: k.Word, Object: k.Object})
	}
	return forms
}
