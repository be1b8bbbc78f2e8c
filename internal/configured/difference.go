package configured

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// A Difference describes how one configuration differs from another one, for the log of a reload. It never contains tokens, or the values of keys
// that may hold a secret: of such a key it says only that it changed.
type Difference struct {
	Settings []string // such as "server.hosts: +tools.example.com"
	Limits   []string // such as "timeout: 5s → 1m" or "math/*: memory: 64MiB → 1GiB"
	Grants   []string // such as "weather/*: http: +https://api.example.com, headers"
}

// maxShown is how many bytes of a value or a list element a Difference shows.
const maxShown = 100

// DifferenceOf returns how the configuration now differs from the configuration before, in the keys that take effect at a reload.
func DifferenceOf(before, now *config.Config) Difference {
	return Difference{Settings: settingsDifference(before, now), Limits: limitsDifference(before, now), Grants: grantsDifference(before, now)}
}

// changes are the changes of one table.
type changes []string

func (to *changes) value(key, before, now string) {
	if before != now {
		*to = append(*to, key+": "+shown(cmp.Or(before, "none"))+" → "+shown(cmp.Or(now, "none")))
	}
}

// maxListed is how many added or removed elements of a list are shown.
const maxListed = 10

func (to *changes) list(key string, before, now []string) {
	in := func(list []string) map[string]bool {
		set := make(map[string]bool, len(list))
		for _, s := range list {
			set[s] = true
		}
		return set
	}
	was, is := in(before), in(now)
	var all []string
	for _, s := range now {
		if !was[s] {
			all = append(all, "+"+shown(s))
		}
	}
	for _, s := range before {
		if !is[s] {
			all = append(all, "-"+shown(s))
		}
	}
	if len(all) > maxListed {
		all = append(all[:maxListed], fmt.Sprintf("and %d more", len(all)-maxListed))
	}
	switch {
	case len(all) > 0:
		*to = append(*to, key+": "+strings.Join(all, " "))
	case !slices.Equal(before, now):
		*to = append(*to, key+": another order")
	}
}

// silent notes a change of a key that may hold a secret, without its value.
func (to *changes) silent(key string, before, now any) {
	if !reflect.DeepEqual(before, now) {
		*to = append(*to, key)
	}
}

// shown returns a value for a Difference. It leaves out words that look like tokens, since a token may be in the wrong place.
func shown(s string) string {
	return text.Clip(likeTokens.ReplaceAllStringFunc(s, withoutToken), maxShown)
}

// likeTokens matches words that are long enough for a token. A token also has a digit.
var likeTokens = regexp.MustCompile(`[A-Za-z0-9_+=-]{16,}`)

func withoutToken(word string) string {
	if strings.ContainsAny(word, "0123456789") {
		return "(not shown)"
	}
	return word
}

func settingsDifference(before, now *config.Config) []string {
	var to changes
	to.list("server.hosts", before.Server.Hosts, now.Server.Hosts)
	to.list("server.cors_origins", before.Server.CORSOrigins, now.Server.CORSOrigins)
	to.list("server.trusted_proxies", prefixes(before.Server.TrustedProxies), prefixes(now.Server.TrustedProxies))
	to.value("server.proxy_header", before.Server.ProxyHeader, now.Server.ProxyHeader)
	mode := func(c *config.Config) string {
		if c.Tools.Allowlist {
			return "allowlist"
		}
		return "denylist"
	}
	to.value("tools.mode", mode(before), mode(now))
	to.list("tools.enabled", before.Tools.Enabled, now.Tools.Enabled)
	to.list("tools.disabled", before.Tools.Disabled, now.Tools.Disabled)
	if !maps.Equal(before.Tools.Reasons, now.Tools.Reasons) {
		to = append(to, "tools.disabled: other reasons")
	}
	to.value("auth.required", fmt.Sprint(before.Auth.Required), fmt.Sprint(now.Auth.Required))
	enabled := func(a *config.Admin) string {
		if a.Disabled || a.Enabled {
			return fmt.Sprint(a.Enabled && !a.Disabled)
		}
		return "auto"
	}
	to.value("admin.enabled", enabled(&before.Admin), enabled(&now.Admin))
	to = append(to, tokensDifference(before, now)...)
	to.value("admin.upload", fmt.Sprint(before.Admin.Upload), fmt.Sprint(now.Admin.Upload))
	to.value("state.versions", text.FormatSize(before.State.Versions), text.FormatSize(now.State.Versions))
	to.value("events.enabled", fmt.Sprint(before.Events.Enabled), fmt.Sprint(now.Events.Enabled))
	to.value("audit.strict", fmt.Sprint(before.Audit.Strict), fmt.Sprint(now.Audit.Strict))
	to.value("rates.default", rates.Describe(before.Rates.Default), rates.Describe(now.Rates.Default))
	to.value("rates.anonymous", rates.Describe(before.Rates.Anonymous), rates.Describe(now.Rates.Anonymous))
	was, is := before.Auth.OIDC, now.Auth.OIDC
	to.value("auth.oidc.issuer", was.Issuer, is.Issuer)
	to.list("auth.oidc.audience", was.Audience, is.Audience)
	to.value("auth.oidc.name", was.Name, is.Name)
	to.list("auth.oidc.rule", rules(was.Rules), rules(is.Rules))
	to.list("auth.certificate", rules(before.Auth.Certificates), rules(now.Auth.Certificates))
	to.list("pin", pins(before.Pins), pins(now.Pins))
	to.silent("auth.tokens_file", before.Auth.TokensFile, now.Auth.TokensFile)
	to.silent("secrets.directory", before.Secrets.Directory, now.Secrets.Directory)
	to.silent("secrets.files", before.Secrets.Files, now.Secrets.Files)
	to.silent("secrets.environment", before.Secrets.Environment, now.Secrets.Environment)
	return to
}

// tokensDifference describes changes of declared tokens by their names.
func tokensDifference(before, now *config.Config) (all []string) {
	name := func(t *config.Token) string { return t.Name }
	for _, line := range byMatch(before.Auth.Declared, now.Auth.Declared, name, func(was, is []config.Token) changes {
		var a, b config.Token
		if len(was) > 0 {
			a = was[0]
		}
		if len(is) > 0 {
			b = is[0]
		}
		var to changes
		to.list("scopes", a.Scopes, b.Scopes)
		to.value("expires", moment(a.Expires), moment(b.Expires))
		to.list("networks", prefixes(a.Networks), prefixes(b.Networks))
		to.value("rate", rates.Describe(a.Rate), rates.Describe(b.Rate))
		to.silent("secret", a.SHA256, b.SHA256)
		return to
	}) {
		all = append(all, "auth.token "+line)
	}
	return all
}

func rules(list []config.ClaimRule) (all []string) {
	for _, r := range list {
		line := fmt.Sprintf("%s %s: %s", r.Claim, r.Value, strings.Join(r.Scopes, ", "))
		if !r.Rate.IsZero() {
			line += " (" + rates.Describe(r.Rate) + ")"
		}
		all = append(all, line)
	}
	return all
}

func pins(list []config.Pin) (all []string) {
	for _, p := range list {
		all = append(all, p.Match+": "+text.ShortDigest(p.SHA256))
	}
	return all
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func prefixes(list []netip.Prefix) (all []string) {
	for _, p := range list {
		all = append(all, p.String())
	}
	return all
}

func limitsDifference(before, now *config.Config) []string {
	var to changes
	for _, e := range limittable.All() {
		to.value(e.Key, cmp.Or(e.Text(before.Limits), "0"), cmp.Or(e.Text(now.Limits), "0"))
	}
	match := func(o *config.Override) string { return o.Match }
	return append(to, byMatch(before.Overrides, now.Overrides, match, func(was, is []config.Override) changes {
		var to changes
		for _, e := range limittable.All() {
			to.value(e.Key, e.Text(over(was)), e.Text(over(is)))
		}
		return to
	})...)
}

// over returns the limits that all overrides with one pattern set together.
func over(list []config.Override) (l limits.Limits) {
	for _, o := range list {
		l = limittable.Over(o.Limits, l)
	}
	return l
}

func grantsDifference(before, now *config.Config) []string {
	match := func(g *config.Grant) string { return g.Match }
	kinds := builtin.With(now.Capabilities)
	return byMatch(before.Grants, now.Grants, match, func(was, is []config.Grant) changes {
		var to changes
		for _, k := range kinds {
			to.rules(shownOf(&k, was), shownOf(&k, is))
		}
		return to
	})
}

// shownOf returns, for each grant, what may be shown of the values of a capability's keys.
func shownOf(k *capability.Kind, grants []config.Grant) (all [][]keys.Shown) {
	for i := range grants {
		rule := grants[i].Rules[k.Name]
		if rule == nil {
			rule = k.New()
		}
		var shown []keys.Shown
		for _, one := range rule.Shown() {
			shown = append(shown, keys.Shown(one))
		}
		all = append(all, shown)
	}
	return all
}

// rules notes how the rules of one capability differ between two lists of grants.
func (to *changes) rules(was, is [][]keys.Shown) {
	first := slices.Concat(was, is)
	if len(first) == 0 {
		return
	}
	for at := range first[0] {
		key := first[0][at].Key()
		_, format := first[0][at].Number()
		_, hides := first[0][at].Hidden()
		switch {
		case format != nil:
			last := func(grants [][]keys.Shown) (n int64) { // the last one that is set applies
				for _, g := range grants {
					number, _ := g[at].Number()
					n = cmp.Or(number, n)
				}
				return n
			}
			if a, b := last(was), last(is); a != b {
				to.value(key, format(a), format(b))
			}
		case hides:
			all := func(grants [][]keys.Shown) (values []any) {
				for _, g := range grants {
					value, _ := g[at].Hidden()
					values = append(values, value)
				}
				return values
			}
			if len(was) > 0 && len(is) > 0 || slices.ContainsFunc(all(first), func(v any) bool { return !reflect.ValueOf(v).IsZero() }) {
				to.silent(key, all(was), all(is))
			}
		default:
			all := func(grants [][]keys.Shown) (elements []string) {
				for _, g := range grants {
					elements = append(elements, g[at].List()...)
				}
				return elements
			}
			to.list(key, all(was), all(is))
		}
	}
}

// byMatch returns what changed in tables. Tables with the same pattern count as one. A changed order of patterns is a change, too, since later tables
// win.
func byMatch[T any](before, now []T, match func(*T) string, difference func(was, is []T) changes) (all []string) {
	group := func(list []T) (by map[string][]T, order []string) {
		by = map[string][]T{}
		for i := range list {
			m := match(&list[i])
			if by[m] == nil {
				order = append(order, m)
			}
			by[m] = append(by[m], list[i])
		}
		return by, order
	}
	was, orderWas := group(before)
	is, orderIs := group(now)
	for _, m := range orderIs {
		what := shown(m) + ": "
		if was[m] == nil {
			what = "+" + what
		}
		if to := difference(was[m], is[m]); len(to) > 0 {
			all = append(all, what+strings.Join(to, ", "))
		} else if was[m] == nil {
			all = append(all, strings.TrimSuffix(what, ": "))
		}
	}
	for _, m := range orderWas {
		if is[m] == nil {
			all = append(all, "-"+shown(m))
		}
	}
	kept := func(order []string, by map[string][]T) []string {
		return slices.DeleteFunc(order, func(m string) bool { return by[m] == nil })
	}
	if !slices.Equal(kept(orderWas, is), kept(orderIs, was)) {
		all = append(all, "another order")
	}
	return all
}
