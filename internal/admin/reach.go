package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/admin/reach"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// maxWays is how many ways are listed at most.
const maxWays = 100_000

// ReachArguments are the arguments of the operation reach.
type ReachArguments struct {
	Pattern   string `json:"pattern,omitempty" description:"Show only calls of tools that match, such as math/add, math or math/*." maxLength:"1024"`
	Principal string `json:"principal,omitempty" description:"Show only what this caller can reach." maxLength:"128"`
}

// A Reach is everything that callers can reach.
type Reach struct {
	Ways []reach.Way `json:"ways" description:"How callers reach what is outside the sandboxes, by caller, tool and what is reached."`
}

// reaches shows what callers can reach now, judging by what is enforced: the tools that can be called, the values that their calls get, and the
// scopes of callers.
func reaches() Operation {
	return Looks("reach", "Show what callers can reach outside the sandboxes, directly and through tools that call others", func(_ context.Context, r *Request, in ReachArguments) (Reach, error) {
		match, err := matcher(in.Pattern)
		if err != nil {
			return Reach{}, err
		}
		principals := r.Server.Principals()
		if in.Principal != "" {
			p, err := find(principals, in.Principal)
			if err != nil {
				return Reach{}, err
			}
			principals = []*wasmtools.Principal{p}
		}
		g, granted := r.generation(), r.inForce().Granted
		ways, complete := reach.Ways(Callable(g.Routes(), granted.Reaches), reach.Options{First: match, Most: maxWays}, principals...)
		if !complete {
			return Reach{}, invalid(fmt.Sprintf("There are more than %d ways to list: name a pattern of tools or a principal", maxWays))
		}
		return Reach{append([]reach.Way{}, ways...)}, nil
	})
}

// Callable returns the routes' tools that can be called, with what they reach.
func Callable(routes []wasmtools.Route, reaches func(path string, needs wasmtools.Needs) []capability.Reached) (all []reach.Tool) {
	for _, route := range routes {
		if route.Enabled {
			all = append(all, reach.Tool{Route: route, Reaches: reaches(route.Path, route.Tool.Needs)})
		}
	}
	return all
}

// find returns the caller with a name.
func find(principals []*wasmtools.Principal, name string) (*wasmtools.Principal, error) {
	names := make([]string, len(principals))
	for i, p := range principals {
		if names[i] = p.String(); names[i] == name {
			return p, nil
		}
	}
	hint := "; no callers are known by name"
	switch {
	case len(principals) == 1 && principals[0].Origin() == wasmtools.OriginOpen:
		hint = ": without tokens anybody may call, under the name " + strconv.Quote(names[0])
	case len(names) > 0:
		const most = 10
		hint = ": the callers are " + strings.Join(names[:min(most, len(names))], ", ")
		if len(names) > most {
			hint += fmt.Sprintf(" and %d more", len(names)-most)
		}
	}
	return nil, &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: fmt.Sprintf("No caller is named %q%s", text.Short(name), hint)}
}

// ExplainArguments are the arguments of the operation explain.
type ExplainArguments struct {
	Principal string `json:"principal" description:"Who would call." minLength:"1" maxLength:"128"`
	Tool      string `json:"tool" description:"The tool that would be called, such as math/add." minLength:"1" maxLength:"1024"`
}

// An Explanation is whether a call would be allowed, and why.
type Explanation struct {
	Allowed bool   `json:"allowed" description:"Whether all rules hold."`
	Rules   []Rule `json:"rules" description:"The rules, in the order in which a call is checked."`
}

// A Rule is one condition of a call.
type Rule struct {
	Rule    string `json:"rule" enum:"scope,tool,fingerprint,switch,grants,rate" description:"What is checked: whether a scope of the caller matches, whether the tool exists, whether it has the scope's fingerprint, whether it is switched on, whether it was granted what it needs, whether the caller may make a call now."`
	Holds   bool   `json:"holds" description:"Whether the rule holds."`
	Because string `json:"because" description:"Why."`
}

// explain uses the same rules as calls do. A caller that may not call a tool is told that there is none, so only operators learn the reason.
func explain() Operation {
	return Looks("explain", "Show why a caller can call a tool, or can't", func(_ context.Context, r *Request, in ExplainArguments) (Explanation, error) {
		p, err := find(r.Server.Principals(), in.Principal)
		if err != nil {
			return Explanation{}, err
		}
		path := "/" + strings.TrimPrefix(in.Tool, "/")
		g := r.generation()
		e := Explanation{Allowed: true}
		say := func(rule string, holds bool, because string) {
			e.Rules = append(e.Rules, Rule{rule, holds, because})
			e.Allowed = e.Allowed && holds
		}
		may := p.May(path)
		say("scope", may, scopeOf(p, path, may))
		route, ok := g.Lookup(path)
		if !ok {
			say("tool", false, "no tool has the path "+text.Short(path)+": toolsrv tools --all lists those that exist, and toolsrv status the files that are refused")
			return e, nil
		}
		say("tool", true, "it is served from "+text.Short(route.Tool.Source))
		explainFingerprint(p, &route, say)
		why := decider(g)(&route)
		on := route.Enabled || route.Ungranted
		switch {
		case why.By == ByDefault || why.By == ByGrants:
			say("switch", on, "nothing switches it off")
		default:
			say("switch", on, why.String())
		}
		if missing := lacking.Each(route.Tool.Missing); len(missing) > 0 {
			say("grants", false, "not granted: "+strings.Join(missing, ", "))
		} else {
			say("grants", true, "it has every grant that it needs"+ownNeeds(r, p, &route))
		}
		explainRates(r, p, say)
		return e, nil
	})
}

// explainFingerprint says whether a tool matches the fingerprint in a scope, if only scopes with a fingerprint allow it.
func explainFingerprint(p *wasmtools.Principal, route *wasmtools.Route, say func(rule string, holds bool, because string)) {
	approved := p.Approved(route.Path)
	switch may := p.MayCall(route); {
	case len(approved) == 0:
	case may:
		say("fingerprint", true, "what clients see of the tool is the same as when the caller was bound to it")
	default:
		say("fingerprint", false, fmt.Sprintf("the caller is bound to %s, and the tool is %s now: look at what clients see of it, and then give the caller the scope %s@%s",
			strings.Join(approved, " or "), route.Fingerprint(), route.Path[1:], route.Fingerprint()))
	}
}

// explainRates says which rates bound the calls of a caller.
func explainRates(r *Request, p *wasmtools.Principal, say func(rule string, holds bool, because string)) {
	inForce := r.inForce().CallRates()
	states := r.Service.Rates.States(p, inForce)
	switch {
	case p.Origin() == wasmtools.OriginOpen && !inForce.Anonymous.IsZero():
		say("rate", true, "each address has "+rates.Describe(inForce.Anonymous))
	case len(states) == 0:
		say("rate", true, "the caller may make any number of calls")
	}
	for _, s := range states {
		holds := (s.Rate.Calls == 0 || s.Left > 0) && (s.Rate.Concurrent == 0 || s.Running < s.Rate.Concurrent)
		because := s.Of.String() + " has " + rates.Describe(s.Rate)
		if s.Rate.Calls > 0 {
			because += fmt.Sprintf("; %d left now", s.Left)
		}
		if s.Rate.Concurrent > 0 {
			because += fmt.Sprintf("; %d running", s.Running)
		}
		say("rate", holds, because)
	}
}

// ownNeeds says which of the caller's own secrets a tool puts into requests, and whether the caller has set them.
func ownNeeds(r *Request, p *wasmtools.Principal, route *wasmtools.Route) string {
	granted := r.inForce().Granted
	id, nobody := personal.Of(p)
	var has, lacks []string
	for _, reached := range granted.Reaches(route.Path, route.Tool.Needs) {
		name, own := strings.CutSuffix(reached.Entry, secret.OfPrincipal)
		switch {
		case !own || !reached.Own || slices.Contains(has, name) || slices.Contains(lacks, name):
			continue
		case nobody == nil:
			if _, ok := granted.Secrets().Own(name, id); ok {
				has = append(has, name)
				continue
			}
		}
		lacks = append(lacks, name)
	}
	said := ""
	if len(has) > 0 {
		said += "; it uses the caller's own secret " + strings.Join(has, ", ")
	}
	if len(lacks) > 0 {
		said += fmt.Sprintf("; its requests need the caller's own secret %s, which %s doesn't have", strings.Join(lacks, ", "), text.Short(p.String()))
	}
	return said
}

// scopeOf returns the scope of a caller that matches a path.
func scopeOf(p *wasmtools.Principal, path string, may bool) string {
	scopes := p.Scopes()
	at := slices.IndexFunc(scopes, func(scope string) bool {
		approval, ok, _ := pattern.ParseApproval(scope)
		return ok && approval.Path == path || !ok && pattern.Match(scope, path)
	})
	switch {
	case may && at >= 0:
		return fmt.Sprintf("the scope %q of %s matches", scopes[at], p)
	case may:
		return fmt.Sprintf("%s may call every tool", p)
	case len(scopes) == 0:
		return fmt.Sprintf("%s has no scope for tools", p)
	}
	return fmt.Sprintf("no scope of %s matches: %s", p, strings.Join(scopes, ", "))
}
