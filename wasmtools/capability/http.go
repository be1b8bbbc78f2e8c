package capability

import (
	"fmt"
	"slices"

	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/egress"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func httpPart() part { return part{egress.Module, (*Grants).http} }

// http grants requests. A need is met where part of it is granted: an operator may grant less than an author asks for, and the tool is
// told of what it may not when it asks for that.
func (g *Grants) http(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	if len(needs.HTTP) == 0 {
		return nil, nil
	}
	for _, need := range needs.HTTP {
		if !slices.ContainsFunc(matching, func(g config.Grant) bool {
			return slices.ContainsFunc(g.HTTP, func(s string) bool { return overlap(need, s) })
		}) {
			missing = append(missing, "http "+need)
		}
	}
	var rules []egress.Rule
	for i := range matching {
		if one := &matching[i]; slices.ContainsFunc(one.HTTP, func(s string) bool {
			return slices.ContainsFunc(needs.HTTP, func(need string) bool { return overlap(need, s) })
		}) {
			rules = append(rules, httpRule(one))
		}
	}
	if len(rules) == 0 {
		return nil, missing
	}
	granted, err := egress.New(needs.HTTP, rules, egress.Options{Secrets: g.broker.secrets})
	if err != nil {
		return nil, append(missing, fmt.Sprintf("http, because %s", err))
	}
	for _, name := range granted.Secrets() {
		if !g.broker.secrets.Has(name) {
			missing = append(missing, fmt.Sprintf("secret %s, which headers of its grant name and no source in [secrets] has", name))
		}
	}
	return granted, missing
}

// overlap reports whether there is a URL that both patterns have. What is no pattern has none.
func overlap(a, b string) bool {
	p, err := reach.ParsePattern(a)
	q, err2 := reach.ParsePattern(b)
	return err == nil && err2 == nil && p.Overlaps(q)
}

func httpRule(g *config.Grant) egress.Rule {
	return egress.Rule{Granted: g.HTTP, Private: g.Private, Redirects: g.Redirects, Headers: g.Headers, CA: g.CA,
		Requests: g.HTTPRequests, RequestBytes: g.HTTPRequestBytes, ResponseBytes: g.HTTPResponseBytes, Timeout: g.HTTPTimeout}
}

// checkHTTP reports what is wrong with the grants of a configuration, such as a file of certificates that is not there.
func checkHTTP(c *config.Config) error {
	for i := range c.Grants {
		if err := egress.Check(httpRule(&c.Grants[i])); err != nil {
			return fmt.Errorf("grant for %q: %w", c.Grants[i].Match, err)
		}
	}
	return nil
}

// usesHTTP reports whether one of the needs is within reach of a grant's entry.
func usesHTTP(entry string, needs []string) bool {
	return slices.ContainsFunc(needs, func(need string) bool { return overlap(need, entry) })
}
