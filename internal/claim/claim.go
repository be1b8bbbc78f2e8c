// Package claim has the rules that turn what an issuer or an authority says about a caller into scopes.
package claim

import (
	"slices"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Rule gives scopes to callers who have a claim with a value.
type Rule struct {
	Claim  string   // such as "groups"
	Value  string   // a value of the claim; if it ends in *, any value with that prefix
	Scopes []string // scopes in the form that package scope reads
	Rate   wasmtools.Rate
}

// matches reports whether a value of the claim meets the rule.
func (r *Rule) matches(value string) bool {
	if begin, ok := strings.CutSuffix(r.Value, "*"); ok {
		return strings.HasPrefix(value, begin)
	}
	return value == r.Value
}

// maxKnown is how many principals are kept, so that each caller has the same one in all requests.
const maxKnown = 10_000

// Rules are the rules for claims of one origin. They are safe for concurrent use.
type Rules struct {
	origin string
	rules  []rule

	mu    sync.Mutex
	known map[known]*wasmtools.Principal
}

// A known is the key of a principal. The three strings are not joined into one, since a name that has not been checked yet may have any bytes.
type known struct{ name, realm, rules string }

type rule struct {
	Rule
	scopes scope.Set
}

// New returns rules, whose principals have this origin. It fails if a scope is not valid.
func New(origin string, rules []Rule) (*Rules, error) {
	all := &Rules{origin: origin, known: map[known]*wasmtools.Principal{}}
	for _, r := range rules {
		scopes, err := scope.Parse(r.Scopes)
		if err != nil {
			return nil, err
		}
		all.rules = append(all.rules, rule{r, scopes})
	}
	return all, nil
}

// Principal returns the principal of this name in a realm, or nil if no rule matches. It has the scopes of all rules that match, and the rate of
// the first of these with a rate. values returns the values of a claim.
func (r *Rules) Principal(name, realm string, values func(claim string) []string) (*wasmtools.Principal, error) {
	var all scope.Set
	var rate wasmtools.Rate
	var matched []byte
	for i := range r.rules {
		one := &r.rules[i]
		if slices.ContainsFunc(values(one.Claim), one.matches) {
			all.Add(one.scopes)
			matched = append(matched, byte(i>>8), byte(i))
			if rate.IsZero() {
				rate = one.Rate
			}
		}
	}
	if matched == nil {
		return nil, nil
	}
	key := known{name, realm, string(matched)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.known[key]; p != nil {
		return p, nil
	}
	p, err := all.Principal(name, r.origin)
	if err == nil {
		p, err = p.WithRealm(realm)
	}
	if err != nil {
		return nil, err
	}
	if len(r.known) >= maxKnown {
		clear(r.known)
	}
	if !rate.IsZero() {
		p = p.WithRate(rate, nil)
	}
	r.known[key] = p
	return p, nil
}

// First returns the first value that a rule matches, and the rule's claim, or two empty strings.
func (r *Rules) First(values func(claim string) []string) (value, claim string) {
	for i := range r.rules {
		one := &r.rules[i]
		for _, value := range values(one.Claim) {
			if one.matches(value) {
				return value, one.Claim
			}
		}
	}
	return "", ""
}

// Values returns the values of the rules for a claim, without patterns.
func (r *Rules) Values(claim string) (all []string) {
	for i := range r.rules {
		if one := &r.rules[i]; one.Claim == claim && !strings.HasSuffix(one.Value, "*") && !slices.Contains(all, one.Value) {
			all = append(all, one.Value)
		}
	}
	return all
}
