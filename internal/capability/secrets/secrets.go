// Package secrets is the import module by which tools read the secrets that they were granted to see.
//
// Without such a grant, package http can still put a secret into the headers of a tool's requests, and the tool does not see it. In both cases the
// secret is removed from whatever the tool says.
package secrets

import (
	"fmt"
	"slices"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_secrets_v1"

// Set returns the functions of Module, with their entries in docs/generated/functions.md.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		// (name, name_len)
		// Answers the current bytes of the secret; the code is `unavailable` if no source has it any more. Where the tool says it, `[secret]`
		// [takes its place](capabilities.md#secrets); output that is not JSON then is `tool_bad_output`.
		{Name: "read", Params: "ii", Results: "i", Do: read},
		answer.Read(),
	}}
}

// A Permission is the value of the set's grant: the secrets that a tool may see.
type Permission struct {
	view  *secret.View
	names []string
	found secret.Names // the same names, in the form that redactors need
}

var _ hostcall.Filter = (*Permission)(nil)

// NewPermission returns a permission to see the secrets with these names.
func NewPermission(v *secret.View, names ...string) *Permission {
	return &Permission{v, slices.Clone(names), secret.NamesOf(names...)}
}

// Equal reports whether the other grant allows the same secrets.
func (g *Permission) Equal(other any) bool {
	o, ok := other.(*Permission)
	return ok && o.view.Equal(g.view) && slices.Equal(o.names, g.names)
}

// Filter removes the secrets from what the tool says.
func (g *Permission) Filter(b []byte, _ fmt.Stringer) []byte {
	return g.view.Redactor(g.found).Bytes(b)
}

// read answers with the secret that has a given name.
func read(c *hostabi.Call, stack []uint64) {
	value, target, f := find(c, stack[0], stack[1])
	use := hostabi.Use{Capability: name, Target: target} // observers must not learn the secret's length
	if f != nil {
		use.Outcome = f.Code
		c.Used(use)
		answer.Fail(c, stack, f)
		return
	}
	c.Used(use)
	answer.Give(c, stack, []byte(value))
}

func find(c *hostabi.Call, ptr, length uint64) (value, asked string, f *answer.Failure) {
	g, ok := c.Grant().(*Permission)
	if !ok {
		return "", "", answer.NotDeclared(c, name)
	}
	given := c.View(ptr, length)
	if asked = string(given[:min(len(given), secret.MaxName)]); len(given) > secret.MaxName || !slices.Contains(g.names, string(given)) {
		return "", asked, answer.Failf(answer.NotGranted, "The tool does not declare that it needs the secret %q: add it to the needs of its manifest, as in \"secrets\": [%[1]q].", asked)
	}
	if value, err := g.view.Secret(asked); err == nil {
		return value, asked, nil
	}
	return "", asked, answer.Failf(answer.Unavailable, "The secret %q no longer exists in its source.", asked)
}
