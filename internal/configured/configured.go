// Package configured says what a configuration means for a tool, and how it differs from another one.
package configured

import (
	"reflect"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Sources returns the sources of tools in the order of their precedence: first the directory in Tools, and then Sources.
func Sources(c *config.Config) []config.Source {
	var all []config.Source
	if c.Tools.Directory != "" {
		all = append(all, config.Source{Directory: c.Tools.Directory, Scripts: c.Tools.Scripts})
	}
	return append(all, c.Sources...)
}

// Place returns where a source is, for messages: a path, a repository with its tag, range or digest, or a bucket.
func Place(s config.Source) string {
	switch {
	case s.Bucket != "":
		return "nats:" + s.Bucket
	case s.OCI == "":
		return s.Directory
	case strings.Contains(s.Tag, ":"):
		return oci.Scheme + s.OCI + "@" + s.Tag
	}
	return oci.Scheme + s.OCI + ":" + s.Tag
}

// Limits returns the limits of the tool at a path such as "/math/add".
func Limits(c *config.Config, path string) limits.Limits {
	l := c.Limits
	for i := range c.Overrides {
		if o := &c.Overrides[i]; pattern.Match(o.Match, path) {
			l = limittable.Over(o.Limits, l)
		}
	}
	return l
}

// Policy returns which tools start enabled.
func Policy(c *config.Config) wasmtools.Policy {
	return wasmtools.Policy{Allowlist: c.Tools.Allowlist, Enabled: c.Tools.Enabled, Disabled: c.Tools.Disabled, Reasons: c.Tools.Reasons}
}

// Principals returns the callers that a configuration names: everybody, those of declared tokens, and one named "token" for all tokens without a
// name. Callers with a token of the state, from an issuer or with a certificate are not known before they call.
func Principals(c *config.Config) (all []*wasmtools.Principal, err error) {
	if len(c.Auth.Tokens) > 0 {
		p, err := wasmtools.NewPrincipal("token", wasmtools.OriginToken, "*")
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	for i := range c.Auth.Declared {
		p, err := tokens.PrincipalOf(&c.Auth.Declared[i])
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if Open(c) {
		all = append(all, wasmtools.Everybody())
	}
	return all, nil
}

// Open reports whether callers need no credentials, provided that there are no tokens in the state either.
func Open(c *config.Config) bool {
	a := &c.Auth
	return !a.Required && len(a.Tokens)+len(a.Declared)+len(a.Certificates) == 0 && a.OIDC.Issuer == ""
}

// NeedRestart returns the keys that take effect only at a start, and whose values in c differ from those at the server's start.
func NeedRestart(started, c *config.Config) []string {
	return needRestart(reflect.ValueOf(started).Elem(), reflect.ValueOf(c).Elem())
}

func needRestart(started, now reflect.Value) (keys []string) {
	for i := range now.NumField() {
		if key := now.Type().Field(i).Tag.Get("restart"); key != "" {
			if !reflect.DeepEqual(fixed(now.Field(i).Interface()), fixed(started.Field(i).Interface())) {
				keys = append(keys, key)
			}
		} else if now.Field(i).Kind() == reflect.Struct {
			keys = append(keys, needRestart(started.Field(i), now.Field(i))...)
		}
	}
	return keys
}

// fixed returns the part of a setting that needs a restart. For sources, that is everything that a reload does not change.
func fixed(setting any) any {
	sources, ok := setting.([]config.Source)
	if !ok {
		return setting
	}
	var all []config.Source
	for _, s := range sources {
		all = append(all, fixedSource(s))
	}
	return all
}

func fixedSource(s config.Source) config.Source {
	s.Locked, s.Mirrors, s.Signers, s.Minimum, s.Credentials, s.CA, s.PlainHTTP = "", nil, nil, "", "", "", false
	return s
}

// SourcesOfRestart returns the places, for messages, of the sources that were added, removed, or changed in a way that needs a restart.
func SourcesOfRestart(started, c *config.Config) (places []string) {
	was, is := map[string]config.Source{}, map[string]config.Source{}
	for _, s := range started.Sources {
		was[Place(s)] = fixedSource(s)
	}
	for _, s := range c.Sources {
		is[Place(s)] = fixedSource(s)
	}
	for place, s := range is {
		if before, ok := was[place]; !ok {
			places = append(places, place+" came")
		} else if !reflect.DeepEqual(s, before) {
			places = append(places, place+" has changed")
		}
	}
	for place := range was {
		if _, ok := is[place]; !ok {
			places = append(places, place+" went")
		}
	}
	slices.Sort(places)
	if places == nil {
		return []string{"their order"}
	}
	return places
}

// ForEveryTool reports whether a grant applies to every tool, including later ones.
func ForEveryTool(g *config.Grant) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(g.Match, "/"), "/") {
		if part != "*" && part != "**" {
			return false
		}
	}
	return true
}

// Entries are the entries of the list of [tools] that applies, by what they name.
type Entries map[string]int

// EntriesOf returns the entries of the list that applies.
func EntriesOf(c *config.Config) Entries {
	list := c.Tools.Disabled
	if c.Tools.Allowlist {
		list = c.Tools.Enabled
	}
	all := Entries{}
	for i, entry := range list {
		scope := "/" + strings.Trim(entry, "/")
		if _, twice := all[scope]; !twice && entry != "" {
			all[scope] = i
		}
	}
	return all
}

// Nearest returns the index of the entry that names the tool at a path such as "/math/add", or else the entry for the nearest namespace around it.
func (e Entries) Nearest(path string) (index int, ok bool) {
	for scope := path; ; scope = scope[:max(1, strings.LastIndexByte(scope, '/'))] {
		if i, ok := e[scope]; ok {
			return i, true
		}
		if scope == "/" {
			return 0, false
		}
	}
}
