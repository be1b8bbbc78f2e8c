package secrets

import (
	"fmt"
	"slices"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// Kind returns the capability. Its needs are the names of the secrets that the tool itself must see.
func Kind() capability.Kind {
	return capability.Kind{
		Name: name, Module: Module, Set: Set(),
		Word:    secret.CheckName,
		New:     func() capability.Rule { return &Rule{} },
		Review:  review,
		Suggest: func(n wasmtools.Need) string { return keys.Line(name, n.Words) },
		Reaches: reaches,
		Open:    open,
	}
}

// name is the name of the capability, and the key of a grant.
const name = "secrets"

// A Rule is the part of one grant in the configuration that concerns secrets which tools themselves may see.
type Rule struct {
	// Visible are the names of these secrets.
	Visible []string
}

var _ capability.Rule = (*Rule)(nil)

// Keys returns the readers of the rule's keys.
func (r *Rule) Keys(string) key.Table {
	return key.Table{
		// names | secrets that the tool itself may see
		"secrets": keys.Words(&r.Visible, keys.SecretName),
	}
}

// Shown returns what a log may show of the rule.
func (r *Rule) Shown() []key.Shown { return []key.Shown{key.Listed(name, r.Visible)} }

func review(v *capability.Review, from capability.Rule) {
	for k, entry := range from.(*Rule).Visible {
		if !slices.ContainsFunc(v.Needs, func(n wasmtools.Need) bool { return slices.Contains(n.Words, entry) }) {
			v.Unneeded(fmt.Sprintf("%s[%d]", name, k), "a secret")
		}
	}
}

// open grants access to secrets.
func open(capability.Host) capability.Configure {
	var standing secret.Register[Permission, *Permission]
	return func(c capability.Configuration) capability.Decide {
		standing.Forget()
		return func(path string, n wasmtools.Need, matching []capability.Given) (any, []wasmtools.Missing) {
			var granted []string
			var missing []wasmtools.Missing
			for _, need := range n.Words {
				switch {
				case !slices.ContainsFunc(matching, func(g capability.Given) bool { return slices.Contains(g.Rule.(*Rule).Visible, need) }):
					missing = append(missing, wasmtools.Missing{Capability: name, Entry: need})
				case !c.Secrets.Has(need):
					missing = append(missing, wasmtools.Missing{Capability: name, Entry: need, Cause: wasmtools.NoSecret})
				default:
					granted = append(granted, need)
				}
			}
			if granted == nil {
				return nil, missing
			}
			view := (*secret.View)(c.Secrets).Again()
			return standing.Standing(path, NewPermission(view, granted...), view), missing
		}
	}
}

// reaches returns the secrets that the tool sees.
func reaches(value any) (all []capability.Reached) {
	for _, secret := range value.(*Permission).names {
		all = append(all, capability.Reached{Capability: name, Entry: secret, Detail: "shown to the tool"})
	}
	return all
}
