package capability

import (
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func secretsPart() part { return part{secret.Module, (*Grants).secrets} }

// secrets grants to see secrets.
func (g *Grants) secrets(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	var granted []string
	for _, need := range needs.Secrets {
		switch {
		case !slices.ContainsFunc(matching, func(g config.Grant) bool { return slices.Contains(g.SecretsVisible, need) }):
			missing = append(missing, "secret "+need)
		case !g.broker.secrets.Has(need):
			missing = append(missing, "secret "+need+", which no source in [secrets] has")
		default:
			granted = append(granted, need)
		}
	}
	if granted == nil {
		return nil, missing
	}
	return secret.NewGrant(g.broker.secrets, granted...), missing
}

// readSecrets has the store have the secrets of a configuration. It returns what is odd about them.
func (b *Broker) readSecrets(c *config.Config) (warnings []string, err error) {
	values, warnings, err := secret.Read(secret.Sources(c.Secrets))
	for _, warning := range warnings {
		b.options.Logger.Warn(warning)
	}
	if err != nil {
		return nil, err
	}
	b.secrets.Replace(values)
	return warnings, nil
}
