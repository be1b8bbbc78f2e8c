package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/oidc"
	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

const (
	maxRules = 1000 // the most rules of one kind
	maxClaim = 1000 // bytes of a claim's name or value
)

// oidcTable returns the readers of the keys of [auth.oidc].
func oidcTable(o *OIDC) key.Table {
	return key.Table{
		// an address with `https://` | the issuer whose tokens are accepted, in addition to other tokens. See [OpenID Connect](#openid-connect)
		"issuer": keys.Word(&o.Issuer, "a string", func(s string) (string, error) {
			if s == "" {
				return s, nil
			}
			return s, oidc.CheckURL(s)
		}),
		// strings | the audiences that a token of the issuer may be for
		"audience": keys.Words(&o.Audience, prose(1, maxClaim)),
		// the claim with the caller's name
		"name": keys.Word(&o.Name, "a string", prose(1, maxClaim)),
	}
}

// checkOIDC checks which keys of [auth.oidc] go together.
func checkOIDC(d *document, o *OIDC) {
	switch {
	case d.refused("auth.oidc.issuer", "auth.oidc.audience", "auth.oidc.rule"):
	case o.Issuer == "" && len(o.Audience)+len(o.Rules) > 0:
		d.fail("auth.oidc", errors.New(`issuer is missing: name who signs the tokens, as in issuer = "https://login.example.com"`))
	case o.Issuer != "" && len(o.Audience) == 0:
		d.fail("auth.oidc", errors.New(`audience is missing: an issuer also signs tokens for others, so say which are for this server, as in audience = ["https://tools.example.com/mcp"]`))
	case o.Issuer != "" && len(o.Rules) == 0:
		d.fail("auth.oidc", errors.New(`there is no rule, so nobody would be let in: add a table [[auth.oidc.rule]] with claim, value and scopes`))
	}
}

// ruleTables reads the tables of an array whose elements are rules. claims are the allowed claims; if empty, all are allowed.
func ruleTables(d *document, name string, claims []string, to *[]ClaimRule) keys.Reader {
	return tableList(d, name, maxRules, "use values such as \"team-*\"", to, func(place string, values map[string]any, r *ClaimRule) {
		d.readTable(place, values, rateKeys(key.Table{
			// a claim, or a kind of names | what the rule checks: a claim of a token, or for a certificate `dns`, `uri`, `email` or `ip`
			"claim": keys.Word(&r.Claim, "a string", func(s string) (string, error) {
				if len(claims) > 0 && !slices.Contains(claims, s) {
					return "", fmt.Errorf("%q is not a kind of name: use one of %s", text.Short(s), strings.Join(claims, ", "))
				}
				return prose(1, maxClaim)(s)
			}),
			// the value that it must have or, if it is a list, contain. A value that ends in `*` matches all values with that beginning
			"value": keys.Word(&r.Value, "a string", prose(1, maxClaim)),
			// as for tokens | what these callers may call
			"scopes": keys.Words(&r.Scopes, func(s string) (string, error) { return s, scope.Check(s) }),
		}, &r.Rate))
		checkRate(d, place, &r.Rate)
		for _, needed := range []string{"claim", "value", "scopes"} {
			if values[needed] == nil {
				d.fail(place, fmt.Errorf("%s is missing: a rule has a claim, the value that it must have, and the scopes that it gives", needed))
				return
			}
		}
		d.checkScopes(place, r.Scopes)
	})
}
