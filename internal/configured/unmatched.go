package configured

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/internal/text"
)

// An Unmatched is an entry of the configuration that matches no tool.
type Unmatched struct {
	// Key is the place of the entry, such as "tools.disabled[0]" or "override[2].match".
	Key string
	// Entry is the entry if it looks like a tool: if there is a tool with a similar name, or one in the same namespace. Otherwise it is empty, since
	// the entry may be a secret in the wrong place.
	Entry string
	// Meant is an existing tool or namespace with a similar name, or empty.
	Meant string
}

// String describes u in a sentence.
func (u Unmatched) String() string {
	message := "the entry matches no tool"
	if u.Entry != "" && isFile(u.Entry) {
		message = "no file has the name " + strconv.Quote(text.Short(u.Entry))
	} else if u.Entry != "" {
		message = strconv.Quote(text.Short(u.Entry)) + " matches no tool"
	}
	if u.Meant != "" {
		return message + ": did you mean " + strconv.Quote(u.Meant) + "?"
	}
	return message
}

// maxGuesses is how many entries get a search for a similar name, which compares an entry with all names.
const maxGuesses = 20

// UnmatchedOf returns the entries of Tools.Disabled and Tools.Enabled, and the patterns of Overrides, Pins, Grants and declared tokens, that match
// none of the tools at paths such as "/math/add". A pin is included only if it also matches none of the files, which are named as in their sources.
func UnmatchedOf(c *config.Config, paths, files []string) []Unmatched {
	known := map[string]struct{}{} // tools and namespaces
	for _, path := range paths {
		for path = strings.TrimPrefix(path, "/"); ; {
			known[path] = struct{}{}
			slash := strings.LastIndexByte(path, '/')
			if slash < 0 {
				break
			}
			path = path[:slash]
		}
	}
	names := slices.Sorted(maps.Keys(known))
	var all []Unmatched
	add := func(key, entry string) {
		u := Unmatched{Key: key}
		typed := strings.TrimSuffix(strings.TrimPrefix(entry, "/"), "/*") // these mean the same
		if len(all) < maxGuesses && !strings.Contains(typed, "*") {
			u.Meant = text.Nearest(typed, names)
		}
		namespace, _, _ := strings.Cut(strings.TrimPrefix(entry, "/"), "/")
		if _, ok := known[namespace]; ok || u.Meant != "" || strings.Trim(entry, "*/") == "" {
			u.Entry = entry
		}
		all = append(all, u)
	}
	for _, list := range []struct {
		key     string
		entries []string
	}{{"tools.disabled", c.Tools.Disabled}, {"tools.enabled", c.Tools.Enabled}} {
		for i, entry := range list.entries {
			if _, ok := known[strings.Trim(entry, "/")]; !ok {
				add(fmt.Sprintf("%s[%d]", list.key, i), entry)
			}
		}
	}
	matches := func(match string) bool {
		_, ok := known[strings.TrimPrefix(match, "/")]
		return ok || strings.Contains(match, "*") && slices.ContainsFunc(paths, func(path string) bool { return pattern.Match(match, path) })
	}
	for i, o := range c.Overrides {
		if !matches(o.Match) {
			add(fmt.Sprintf("%s[%d]", "override", i)+".match", o.Match)
		}
	}
	for i, p := range c.Pins {
		switch key := fmt.Sprintf("%s[%d]", "pin", i) + ".match"; {
		case isFile(p.Match) && !slices.Contains(files, p.Match):
			all = append(all, Unmatched{Key: key, Entry: p.Match, Meant: text.Nearest(p.Match, files)})
		case !isFile(p.Match) && !matches(p.Match):
			add(key, p.Match)
		}
	}
	for i, g := range c.Grants {
		if !matches(g.Match) {
			add(fmt.Sprintf("%s[%d]", "grant", i)+".match", g.Match)
		}
	}
	scopes := func(place string, list []string) {
		for n, text := range list {
			s, err := scope.Parse([]string{text})
			if err != nil || len(s.Tools)+len(s.Approved) == 0 {
				continue
			}
			if path, _, _ := strings.Cut(text, "@"); !matches(path) {
				add(fmt.Sprintf("%s.scopes[%d]", place, n), path)
			}
		}
	}
	for i, t := range c.Auth.Declared {
		scopes(fmt.Sprintf("auth.token[%d]", i), t.Scopes)
	}
	for i, r := range c.Auth.OIDC.Rules {
		scopes(fmt.Sprintf("auth.oidc.rule[%d]", i), r.Scopes)
	}
	for i, r := range c.Auth.Certificates {
		scopes(fmt.Sprintf("auth.certificate[%d]", i), r.Scopes)
	}
	return all
}
