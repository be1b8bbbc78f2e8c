package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
)

const issued = `[auth.oidc]
issuer = "https://login.example.com"
audience = ["https://tools.example.com/mcp"]
`

func TestRules(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("server.tls = {certificate = 'c', key = 'k', client_ca = 'ca'}\n"+issued+`name = "email"
[[auth.oidc.rule]]
claim = "groups"
value = "team-*"
scopes = ["math/*", "metrics"]
[[auth.certificate]]
claim = "dns"
value = "build.example.com"
scopes = ["*"]
`), "")
	if err != nil {
		t.Fatal(err)
	}
	oidc := config.OIDC{
		Issuer: "https://login.example.com", Audience: []string{"https://tools.example.com/mcp"}, Name: "email",
		Rules: []config.ClaimRule{{Claim: "groups", Value: "team-*", Scopes: []string{"math/*", "metrics"}}},
	}
	if !reflect.DeepEqual(c.Auth.OIDC, oidc) {
		t.Errorf("got %+v, want %+v", c.Auth.OIDC, oidc)
	}
	certificates := []config.ClaimRule{{Claim: "dns", Value: "build.example.com", Scopes: []string{"*"}}}
	if !reflect.DeepEqual(c.Auth.Certificates, certificates) {
		t.Errorf("got %+v, want %+v", c.Auth.Certificates, certificates)
	}
}

func TestRuleErrors(t *testing.T) {
	t.Parallel()
	rule := func(text string) string { return issued + "[[auth.oidc.rule]]\n" + text }
	for name, tt := range map[string]struct{ text, want string }{
		"an issuer without https":   {"auth.oidc.issuer = 'http://hunter2.example.com'", "auth.oidc.issuer: must begin with https://"},
		"an invalid issuer":         {"auth.oidc.issuer = 'hunter2'", "auth.oidc.issuer: is not the address of an issuer"},
		"no audience":               {"auth.oidc.issuer = 'https://a.example'", "auth.oidc: audience is missing"},
		"no issuer":                 {"auth.oidc.audience = ['a']", "auth.oidc: issuer is missing"},
		"no rule":                   {issued, "auth.oidc: there is no rule"},
		"an empty audience":         {"auth.oidc.audience = ['']", "auth.oidc.audience[0]: must not be empty"},
		"an unknown key":            {issued + "hunter2 = 1", "unknown key in [auth.oidc]"},
		"no claim":                  {rule("value = 'a'\nscopes = ['*']"), "auth.oidc.rule[0]: claim is missing"},
		"no value":                  {rule("claim = 'a'\nscopes = ['*']"), "auth.oidc.rule[0]: value is missing"},
		"no scopes":                 {rule("claim = 'a'\nvalue = 'b'"), "auth.oidc.rule[0]: scopes is missing"},
		"an unknown role":           {rule("claim = 'a'\nvalue = 'b'\nscopes = ['admin:hunter2']"), "auth.oidc.rule[0].scopes[0]: there is no such role"},
		"an unknown kind":           {"[[auth.certificate]]\nclaim = 'cn'\nvalue = 'a'\nscopes = []", "auth.certificate[0].claim: is not a kind of name: use one of dns, uri, email, ip"},
		"too many rules":            {issued + strings.Repeat("[[auth.oidc.rule]]\n", 1001), "at most 1000 are allowed"},
		"certificates without them": {"[[auth.certificate]]\nclaim = 'dns'\nvalue = 'a'\nscopes = ['*']\n[server.tls]\ncertificate = 'c'\nkey = 'k'", "auth.certificate: needs server.tls.client_ca"},
	} {
		_, err := config.Parse([]byte(tt.text), "")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q, and nothing of the value", name, err, tt.want)
		}
	}
}
