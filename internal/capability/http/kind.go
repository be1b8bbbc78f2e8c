package http

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// Kind returns the capability. Its needs are origins with or without the prefix of a path, such as "https://api.example.com" or
// "https://*.example.com/v2/".
func Kind() capability.Kind {
	return capability.Kind{
		Name: "http", Module: Module, Set: Set(), Waits: true,
		Word:    checkNeed,
		New:     func() capability.Rule { return &Rule{} },
		Misfits: misfits,
		Verify: func(r capability.Rule) error {
			if err := Check(*r.(*Rule)); err != nil {
				return keys.Pathless(err)
			}
			return nil
		},
		Review:  review,
		Suggest: suggest,
		Reaches: reaches,
		Open:    open,
	}
}

// maxNeed is the longest entry of a need in bytes: a name of DNS has 253.
const maxNeed = 300

func checkNeed(s string) error {
	if len(s) > maxNeed {
		return fmt.Errorf("%q is not the address of a service: it has %d bytes; the limit is %d", text.Short(s), len(s), maxNeed)
	}
	_, err := reach.ParsePattern(s)
	return err
}

// These are the ranges of what can be granted.
const (
	maxRequests = 10_000
	maxBody     = 1 << 30 // bytes; a body is held in memory
	maxField    = 8 << 10 // bytes of a header's name or value
)

var _ capability.Rule = (*Rule)(nil)

// Keys returns the readers of the rule's keys.
func (r *Rule) Keys(directory string) key.Table {
	return key.Table{
		// origins, with or without the prefix of a path | services that may be called
		"http": keys.Words(&r.Granted, service),
		// ranges of addresses | [special addresses](capabilities.md#http) that `http` may reach all the same, such as `"10.0.0.0/8"`
		"private": keys.List(`a list such as ["10.0.0.0/8"]`, keys.Prefix(&r.Private)),
		// how many redirects are followed; 0, the default: the tool gets the answers 3xx themselves
		"redirects": keys.Quantity(limittable.Count, 0, MaxRedirects, func(n int64) { r.Redirects = int(n) }),
		// headers, by entries of `http`, written as they are there | headers that are [put into requests](capabilities.md#http) which the entry
		// matches. `${secret:name}` stands for a secret, `${secret:name@principal}` for [the caller's own](capabilities.md#each-callers-own), and
		// `${principal}` for who calls
		"headers": keys.Entries(&r.Headers, `a table such as {"https://api.example.com" = {Authorization = "Bearer ${secret:key}"}}`, service,
			func(to *map[string]string) keys.Reader {
				return keys.Entries(to, `a table such as {Authorization = "Bearer ${secret:key}"}`, headerName,
					func(to *string) keys.Reader { return keys.Word(to, "a string", headerValue) })
			}),
		// whether requests say which [trace](operations.md#traces) they are part of, if it is recorded; `false` if it is missing
		"traceparent": keys.Boolean(&r.Traceparent),
		// PEM file with certificates that are trusted besides those of the system
		"ca": keys.Word(&r.CA, "a path", keys.Path(directory, true)),
		// how many requests a tool may send in a client's call, redirects and calls of the tool inside it included; 32 if it is missing
		"http_requests": keys.Quantity(limittable.Count, 1, maxRequests, func(n int64) { r.Requests = int(n) }),
		// how large the body of a request may be; 1MiB if it is missing
		"http_request_bytes": keys.Quantity(limittable.Bytes, 1, maxBody, func(n int64) { r.RequestBytes = n }),
		// how large the body of an answer may be, decompressed; 4MiB if it is missing
		"http_response_bytes": keys.Quantity(limittable.Bytes, 1, maxBody, func(n int64) { r.ResponseBytes = n }),
		// how long a request may take with its redirects, within its call; 30s if it is missing
		"http_timeout": keys.Quantity(limittable.Time, int64(time.Millisecond), int64(time.Hour), func(n int64) { r.Timeout = time.Duration(n) }),
	}
}

// Shown returns what a log may show of the rule.
func (r *Rule) Shown() []key.Shown {
	var private []string
	for _, p := range r.Private {
		private = append(private, p.String())
	}
	return []key.Shown{
		key.Listed("http", r.Granted),
		key.Listed("private", private),
		key.Counted("redirects", int64(r.Redirects), limittable.Count.Format),
		key.Counted("http_requests", int64(r.Requests), limittable.Count.Format),
		key.Counted("http_request_bytes", r.RequestBytes, limittable.Bytes.Format),
		key.Counted("http_response_bytes", r.ResponseBytes, limittable.Bytes.Format),
		key.Counted("http_timeout", int64(r.Timeout), limittable.Time.Format),
		key.Counted("traceparent", map[bool]int64{true: 1}[r.Traceparent], func(n int64) string { return strconv.FormatBool(n > 0) }),
		key.Silent("headers", r.Headers),
		key.Silent("ca", r.CA),
	}
}

// misfits reports headers for services that the rule does not grant.
func misfits(from capability.Rule, report func(key string, err error)) {
	r := from.(*Rule)
	for _, origin := range slices.Sorted(maps.Keys(r.Headers)) {
		if !slices.Contains(r.Granted, origin) {
			report("headers", &keys.MemberError{Name: origin, Err: errors.New("it is not in the grant's http: repeat one of its entries exactly")})
		}
	}
}

// service checks an origin, with or without a path prefix.
func service(s string) (string, error) {
	_, err := reach.ParsePattern(s)
	return s, err
}

// headerName checks the name of a header.
func headerName(s string) (string, error) {
	if s == "" || len(s) > maxField || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(keys.Plain+"!#$%&'*+.^`|~", r) }) {
		return "", fmt.Errorf("%q is not the name of a header", text.Short(s))
	}
	return s, nil
}

// headerValue checks the value of a header. It does not show it, because it may be a secret.
func headerValue(s string) (string, error) {
	if len(s) > maxField || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) {
		return "", fmt.Errorf("is not a valid value for a header: use printable ASCII, at most %d bytes", maxField)
	}
	return s, nil
}

// open opens the capability. It keeps what outlives a configuration: connections, the injected secrets, and the grants that tools have.
func open(h capability.Host) capability.Configure {
	o := Options{Connections: NewConnections(h.Connections), Injected: &Injected{}, Logger: h.Logger}
	var standing secret.Register[Permission, *Permission]
	return func(c capability.Configuration) capability.Decide {
		var rules []Rule
		patterns := map[string]reach.Pattern{} // the patterns of all entries, parsed once: there may be many tools
		for _, given := range c.Given {
			r := given.Rule.(*Rule)
			rules = append(rules, *r)
			for entry, p := range patternsOf(r.Granted) {
				patterns[entry] = p
			}
		}
		o.Injected.Put(rules, (*secret.View)(c.Secrets).Newest())
		standing.Forget()
		return func(path string, n wasmtools.Need, matching []capability.Given) (any, []wasmtools.Missing) {
			rules, missing := meet(n.Words, matching, patterns)
			if len(rules) == 0 {
				return nil, missing
			}
			o, view := o, (*secret.View)(c.Secrets).Again()
			o.Secrets = view
			granted, err := New(n.Words, rules, o)
			if err != nil {
				return nil, append(missing, wasmtools.Missing{Capability: "http", Cause: wasmtools.Unusable, Detail: keys.Pathless(err).Error()})
			}
			granted = standing.Standing(path+" "+strings.Join(n.Words, " "), granted, view)
			for _, name := range granted.Secrets() {
				if !isOwn(name) && !c.Secrets.Has(name) { // whether a caller has its own is known only when it calls
					missing = append(missing, wasmtools.Missing{Capability: "http", Cause: wasmtools.NoSecret, Line: lineOf(name, matching)})
				}
			}
			return granted, missing
		}
	}
}

// meet returns the rules that meet a need, and the missing entries. An entry is met if part of it is granted: an operator may grant less than an
// author declares, and the tool gets an error when it asks for the rest.
func meet(needs []string, matching []capability.Given, patterns map[string]reach.Pattern) (rules []Rule, missing []wasmtools.Missing) {
	wanted := make([]reach.Pattern, len(needs))
	for k, need := range needs {
		wanted[k], _ = reach.ParsePattern(need) // an entry that is not a pattern overlaps nothing
	}
	met := make([]bool, len(wanted))
	for _, given := range matching {
		r, uses := given.Rule.(*Rule), false
		for _, entry := range r.Granted {
			granted := patterns[entry]
			for k := range wanted {
				if wanted[k].Overlaps(granted) {
					met[k], uses = true, true
				}
			}
		}
		if uses {
			rules = append(rules, *r)
		}
	}
	for k, need := range needs {
		if !met[k] {
			missing = append(missing, wasmtools.Missing{Capability: "http", Entry: need})
		}
	}
	return rules, missing
}

// lineOf returns the line of the grant whose headers name a secret, or 0. The error gives the line, since the name may be the secret itself.
func lineOf(name string, matching []capability.Given) int {
	for _, given := range matching {
		for _, headers := range given.Rule.(*Rule).Headers {
			for _, value := range headers {
				if given.Line > 0 && strings.Contains(value, "${secret:"+name+"}") {
					return given.Line
				}
			}
		}
	}
	return 0
}

// patternsOf returns the patterns of entries, by entry. It leaves out entries that are not patterns.
func patternsOf(entries []string) map[string]reach.Pattern {
	patterns := make(map[string]reach.Pattern, len(entries))
	for _, entry := range entries {
		if p, err := reach.ParsePattern(entry); err == nil {
			patterns[entry] = p
		}
	}
	return patterns
}

func review(v *capability.Review, from capability.Rule) {
	r := from.(*Rule)
	reviewHeaders(v, r)
	wanted := map[string]reach.Pattern{}
	for _, n := range v.Needs {
		for _, need := range n.Words {
			if _, known := wanted[need]; !known {
				wanted[need], _ = reach.ParsePattern(need) // a need that is not a pattern overlaps nothing
			}
		}
	}
	granted := patternsOf(r.Granted)
	for k, entry := range r.Granted {
		used := false
		for _, p := range wanted {
			used = used || p.Overlaps(granted[entry])
		}
		if !used {
			// For some services, the path is a key, so it is not shown.
			v.Unneeded(fmt.Sprintf("http[%d]", k), strings.Join(strings.SplitN(entry, "/", 4)[:3], "/"))
		}
	}
}

// reviewHeaders finds headers whose names say that they are keys, but whose values are written in the configuration: nothing keeps these secret.
func reviewHeaders(v *capability.Review, r *Rule) {
	own := false
	for _, origin := range slices.Sorted(maps.Keys(r.Headers)) {
		for _, name := range slices.Sorted(maps.Keys(r.Headers[origin])) {
			folded := strings.ToLower(name)
			own = own || strings.Contains(r.Headers[origin][name], secret.OfPrincipal+"}") || strings.Contains(r.Headers[origin][name], "${principal}")
			isKey := slices.ContainsFunc([]string{"auth", "cookie", "key", "secret", "token"}, func(word string) bool { return strings.Contains(folded, word) })
			if isKey && !strings.Contains(r.Headers[origin][name], "${secret:") {
				if !slices.Contains(keyHeaders, folded) {
					name = "a header" // its name may be the key itself
				}
				v.Warn("headers", "the value of %s stands here, where nothing keeps it out of answers and log lines: put it into [secrets], and write ${secret:name}", name)
			}
		}
	}
	if own {
		v.OfNobody("headers")
	}
}

// keyHeaders are the names of headers that are known to contain keys.
var keyHeaders = []string{"authorization", "proxy-authorization", "cookie", "api-key", "x-api-key", "x-auth-token", "x-auth-key", "x-access-token", "private-token"}

func suggest(n wasmtools.Need) string {
	return keys.Line("http", n.Words) + keys.Line("private", nearRanges(n.Words))
}

// nearRanges returns the ranges that a grant of these URLs needs in private: the ranges of special addresses that the URLs name. It is not known here
// which addresses host names have.
func nearRanges(urls []string) (ranges []string) {
	for _, u := range urls {
		parsed, err := url.Parse(u)
		if err != nil {
			continue
		}
		host := parsed.Hostname()
		if host == "localhost" || strings.HasSuffix(host, ".localhost") {
			ranges = append(ranges, "127.0.0.1/32", "::1/128")
			continue
		}
		if a, err := netip.ParseAddr(host); err == nil {
			if _, _, special := reach.Special(a); special {
				ranges = append(ranges, netip.PrefixFrom(a, a.BitLen()).String())
			}
		}
	}
	slices.Sort(ranges)
	return slices.Compact(ranges)
}

// reaches returns the URLs to which a request may go, and the secrets that are put into such requests. The last rule that grants a URL applies to a
// request, and of two headers with one name the later one. Entries that later ones cover completely are left out.
func reaches(value any) (all []capability.Reached) {
	g := value.(*Permission)
	for i, r := range g.rules {
		detail := ""
		if len(r.Private) > 0 {
			detail = "also at " + strings.Trim(fmt.Sprint(r.Private), "[]")
		}
		for _, needed := range g.needed {
			for _, granted := range r.granted {
				both, ok := needed.Meet(granted)
				if !ok || granting(g.rules[i+1:], both) {
					continue
				}
				all = append(all, capability.Reached{Capability: "http", Entry: both.String(), Detail: detail})
				for k, h := range r.headers {
					on, ok := both.Meet(h.on)
					if !ok || granting(g.rules[i+1:], on) || slices.ContainsFunc(r.headers[k+1:], func(later header) bool { return fold(later.name) == fold(h.name) && on.Within(later.on) }) {
						continue
					}
					for _, name := range secretNames([]header{h}) {
						all = append(all, capability.Reached{Capability: "secrets", Entry: name, Detail: "put into requests to " + on.String(), Own: isOwn(name)})
					}
				}
			}
		}
	}
	slices.SortFunc(all, capability.Reached.Compare)
	return slices.Compact(all)
}

// granting reports whether one of the rules grants everything that a pattern matches.
func granting(rules []*rule, p reach.Pattern) bool {
	return slices.ContainsFunc(rules, func(r *rule) bool { return slices.ContainsFunc(r.granted, p.Within) })
}
