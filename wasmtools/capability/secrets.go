package capability

import (
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func secretsPart() part { return part{secret.Module, (*Grants).secrets} }

// secrets grants to see secrets.
func (g *Grants) secrets(path string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	var granted []string
	for _, need := range needs.Secrets {
		switch {
		case !slices.ContainsFunc(matching, func(g config.Grant) bool { return slices.Contains(g.SecretsVisible, need) }):
			missing = append(missing, "secret "+need)
		case !g.values.Has(need):
			missing = append(missing, "secret "+need+", which no source in [secrets] has")
		default:
			granted = append(granted, need)
		}
	}
	if granted == nil {
		return nil, missing
	}
	view := secret.NewView(g.broker.secrets, g.values)
	return g.broker.visible.standing(path, secret.NewGrant(view, granted...), view, g.values), missing
}

// readSecrets returns the secrets of a configuration, which the store knows from then on, and what is odd about them.
func (b *Broker) readSecrets(c *config.Config) (values *secret.Values, warnings []string, err error) {
	values, warnings, err = secret.Read(secret.Sources(c.Secrets))
	if err == nil {
		if warning := b.secrets.Add(values); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	for _, warning := range warnings {
		b.options.Logger.Warn(warning)
	}
	return values, warnings, err
}
