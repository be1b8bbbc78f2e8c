package capability

import (
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/egress"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func httpPart() part { return part{egress.Module, (*Grants).http} }

// http grants requests. A need is met where part of it is granted: an operator may grant less than an author asks for, and the tool is
// told of what it may not when it asks for that.
func (g *Grants) http(path string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	if len(needs.HTTP) == 0 {
		return nil, nil
	}
	wanted := make([]reach.Pattern, len(needs.HTTP))
	for k, need := range needs.HTTP {
		wanted[k], _ = reach.ParsePattern(need) // one that is no pattern overlaps nothing
	}
	met := make([]bool, len(wanted))
	var rules []egress.Rule
	for i := range matching {
		uses := false
		for _, entry := range matching[i].HTTP {
			granted := g.patterns[entry]
			for k := range wanted {
				if wanted[k].Overlaps(granted) {
					met[k], uses = true, true
				}
			}
		}
		if uses {
			rules = append(rules, httpRule(&matching[i]))
		}
	}
	for k, need := range needs.HTTP {
		if !met[k] {
			missing = append(missing, "http "+need)
		}
	}
	if len(rules) == 0 {
		return nil, missing
	}
	view := secret.NewView(g.broker.secrets, g.values)
	granted, err := egress.New(needs.HTTP, rules, egress.Options{Secrets: view, Connections: g.broker.connections, Injected: &g.broker.injected})
	if err != nil {
		return nil, append(missing, fmt.Sprintf("http, because %s", config.Pathless(err)))
	}
	granted = g.broker.sending.standing(path+" "+strings.Join(needs.HTTP, " "), granted, view, g.values)
	for _, name := range granted.Secrets() {
		if !g.values.Has(name) {
			missing = append(missing, fmt.Sprintf("the secret of ${secret:...} in the headers of its grant%s: no source in [secrets] has it", linesOf(name, matching)))
		}
	}
	return granted, missing
}

// linesOf says in which lines the grants begin whose headers name a secret, which may be no name but the secret itself.
func linesOf(name string, matching []config.Grant) string {
	for i := range matching {
		for _, headers := range matching[i].Headers {
			for _, value := range headers {
				if matching[i].Line > 0 && strings.Contains(value, "${secret:"+name+"}") {
					return fmt.Sprintf(" (line %d)", matching[i].Line)
				}
			}
		}
	}
	return ""
}

// patternsOf returns the patterns of all entries of HTTP in a configuration, parsed once: there may be many tools. What is no pattern is
// left out.
func patternsOf(c *config.Config) map[string]reach.Pattern {
	patterns := map[string]reach.Pattern{}
	for i := range c.Grants {
		for _, entry := range c.Grants[i].HTTP {
			if p, err := reach.ParsePattern(entry); err == nil {
				patterns[entry] = p
			}
		}
	}
	return patterns
}

func httpRule(g *config.Grant) egress.Rule {
	return egress.Rule{Granted: g.HTTP, Private: g.Private, Redirects: g.Redirects, Headers: g.Headers, CA: g.CA,
		Requests: g.HTTPRequests, RequestBytes: g.HTTPRequestBytes, ResponseBytes: g.HTTPResponseBytes, Timeout: g.HTTPTimeout}
}

// httpRules returns the rules of all grants.
func httpRules(c *config.Config) (rules []egress.Rule) {
	for i := range c.Grants {
		rules = append(rules, httpRule(&c.Grants[i]))
	}
	return rules
}

// placeOf says which grant is meant, without what it says.
func placeOf(g *config.Grant, i int) string {
	if g.Line == 0 {
		return fmt.Sprintf("grant[%d]", i)
	}
	return fmt.Sprintf("grant[%d] (line %d)", i, g.Line)
}

// checkHTTP reports what is wrong with the grants of a configuration, such as a file of certificates that is not there.
func checkHTTP(c *config.Config) error {
	for i := range c.Grants {
		if err := egress.Check(httpRule(&c.Grants[i])); err != nil {
			return fmt.Errorf("%s: %w", placeOf(&c.Grants[i], i), config.Pathless(err))
		}
	}
	return nil
}
