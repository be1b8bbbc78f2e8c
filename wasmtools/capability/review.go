package capability

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/files"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// A Finding is what is wrong with the grants of a configuration, or dangerous.
type Finding struct {
	// Key is the place, such as "grant[0].http[1]".
	Key string `json:"key"`
	// Line is that of the configuration file where the grant begins, or 0.
	Line int `json:"line,omitempty"`
	// Message says what is wrong there, and what to do.
	Message string `json:"message"`
	// Warning tells that nothing is wrong, but much is granted.
	Warning bool `json:"warning"`
}

// Review returns what is wrong with the grants of a configuration: entries that no tool which they are for declares that it needs,
// places that are not there, grants for every tool. tools are all that there are. A grant that matches none of them is left to
// [config.Config.Unmatched], and what a tool lacks is in its Missing.
func Review(c *config.Config, tools []*wasmtools.Tool) (findings []Finding) {
	patterns := patternsOf(c)
	for i := range c.Grants {
		r := reviewer{patterns: patterns, grant: &c.Grants[i], place: fmt.Sprintf("grant[%d].", i)}
		if r.grant.ForEveryTool() {
			r.add("match", true, "%q grants this to every tool, even to those that are added later: name the tools", text.Short(r.grant.Match))
		}
		if r.grant.KV > 0 && c.State.Directory == "" {
			r.add("kv", false, "there is no place to keep it: set directory in [state]")
		}
		for _, name := range slices.Sorted(maps.Keys(r.grant.Files)) {
			if err := files.Check(r.grant.Files[name]); err != nil {
				r.add(filesKey(name, tools), false, "%v", config.Pathless(err))
			} else if filepath.Dir(r.grant.Files[name]) == r.grant.Files[name] {
				r.add(filesKey(name, tools), true, "this grants all files of the machine that the server can read, including its configuration and its keys: name a folder")
			}
		}
		r.openKeys()
		r.unused(tools)
		findings = append(findings, r.findings...)
	}
	return findings
}

// A reviewer reviews one grant.
type reviewer struct {
	grant    *config.Grant
	place    string
	patterns map[string]reach.Pattern
	findings []Finding
}

func (r *reviewer) add(key string, warning bool, format string, args ...any) {
	r.findings = append(r.findings, Finding{r.place + key, r.grant.Line, fmt.Sprintf(format, args...), warning})
}

// openKeys finds headers that are keys by their names, and stand in the configuration as they are: nothing knows that they are secret.
func (r *reviewer) openKeys() {
	for _, origin := range slices.Sorted(maps.Keys(r.grant.Headers)) {
		for _, name := range slices.Sorted(maps.Keys(r.grant.Headers[origin])) {
			folded := strings.ToLower(name)
			isKey := slices.ContainsFunc([]string{"auth", "cookie", "key", "secret", "token"}, func(word string) bool { return strings.Contains(folded, word) })
			if isKey && !strings.Contains(r.grant.Headers[origin][name], "${secret:") {
				if !slices.Contains(keyHeaders, folded) {
					name = "a header" // its name may be the key
				}
				r.add("headers", true, "%s has its value here, where nothing keeps it out of answers and log lines: put it into [secrets], and write ${secret:name}", name)
			}
		}
	}
}

// keyHeaders are names of headers that are keys, and known as such.
var keyHeaders = []string{"authorization", "proxy-authorization", "cookie", "api-key", "x-api-key", "x-auth-token", "x-auth-key", "x-access-token", "private-token"}

// filesKey returns the key of an entry of files, with its name where a tool knows it: another one may be a secret in the wrong place.
func filesKey(name string, tools []*wasmtools.Tool) string {
	if slices.ContainsFunc(tools, func(t *wasmtools.Tool) bool { return slices.Contains(t.Needs.Files, name) }) {
		return "files." + name
	}
	return "files"
}

// unneeded does not show the entry: its place tells it, and it may be a secret in the wrong place. what is what is known of it.
func (r *reviewer) unneeded(key, what string) {
	r.add(key, false, "%s is granted, but none of the tools that the grant matches needs it: remove it", what)
}

// unused finds what nobody needs: a slip of the pen, or what a tool needed once.
func (r *reviewer) unused(tools []*wasmtools.Tool) {
	g := r.grant
	var needs []wasmtools.Needs
	wanted := map[string]reach.Pattern{} // of all their needs of HTTP
	matches := false
	for _, t := range tools {
		if pattern.Match(g.Match, t.Path()) {
			matches = true
			if !t.Needs.IsZero() {
				needs = append(needs, t.Needs)
				for _, need := range t.Needs.HTTP {
					if _, known := wanted[need]; !known {
						wanted[need], _ = reach.ParsePattern(need) // that of a need which is no pattern overlaps nothing
					}
				}
			}
		}
	}
	if !matches {
		return
	}
	check := func(key, what string, uses func(n wasmtools.Needs) bool) {
		if !slices.ContainsFunc(needs, uses) {
			r.unneeded(key, what)
		}
	}
	for k, entry := range g.HTTP {
		used, granted := false, r.patterns[entry]
		for _, p := range wanted {
			used = used || p.Overlaps(granted)
		}
		if !used {
			// Paths are keys, with some services.
			r.unneeded(fmt.Sprintf("http[%d]", k), strings.Join(strings.SplitN(entry, "/", 4)[:3], "/"))
		}
	}
	if g.KV > 0 {
		check("kv", "kv", func(n wasmtools.Needs) bool { return n.KV })
	}
	if g.Config != nil {
		check("config", "config", func(n wasmtools.Needs) bool { return n.Config != nil })
	}
	for _, name := range slices.Sorted(maps.Keys(g.Files)) {
		check(filesKey(name, tools), "a folder", func(n wasmtools.Needs) bool { return slices.Contains(n.Files, name) })
	}
	for k, entry := range g.Tools {
		check(fmt.Sprintf("tools[%d]", k), "a tool", func(n wasmtools.Needs) bool {
			return slices.ContainsFunc(n.Tools, func(need string) bool { return pattern.Match(entry, need) })
		})
	}
	for k, entry := range g.SecretsVisible {
		check(fmt.Sprintf("secrets_visible[%d]", k), "a secret", func(n wasmtools.Needs) bool { return slices.Contains(n.Secrets, entry) })
	}
}
