package http

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// Bounds of a request's headers.
const (
	maxHeaders     = 100      // that a guest may set
	maxHeaderBytes = 32 << 10 // of their names and values
	maxInjected    = 16 << 10 // bytes of a value that the host sets
)

// reserved are the headers that a guest must not set: they say where a request goes, where it ends and how it is encoded, or
// concern the connection. Package net/http would mind some of them, and send others. Proxy is HTTP_PROXY to CGI programs.
var reserved = []string{"accept-encoding", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy", "te", "trailer", "transfer-encoding", "upgrade"}

// fold returns a name as the most careless of servers compares it: to those that speak CGI, all but letters and digits is a _.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// asksForPart reports whether headers ask for a part of an answer, as some server may read them.
func asksForPart(headers http.Header) bool {
	for name := range headers {
		if folded := fold(name); folded == "range" || strings.HasSuffix(folded, "-range") {
			return true
		}
	}
	return false
}

func isReserved(name string) bool {
	folded := fold(name)
	return slices.Contains(reserved, folded) || strings.HasPrefix(folded, "proxy-") || strings.HasPrefix(folded, "sec-")
}

// onlyUTF8 reports whether headers ask for no other charset than UTF-8. In others, such as UTF-7 and those of EBCDIC, a server could
// repeat a secret so that it is not found.
func onlyUTF8(headers http.Header) bool {
	for name, values := range headers {
		all := strings.ToLower(strings.Join(values, ","))
		switch fold(name) {
		case "accept-charset":
			for item := range strings.SplitSeq(all, ",") {
				charset, _, _ := strings.Cut(item, ";")
				if !isUTF8(charset) {
					return false
				}
			}
		case "accept": // the parameters of media types, whatever is in quotes
			all = strings.NewReplacer(" ", "", "\t", "", `"`, "", `\`, "").Replace(all)
			for item := range strings.FieldsFuncSeq(all, func(r rune) bool { return r == ',' || r == ';' }) {
				if charset, ok := strings.CutPrefix(item, "charset"); ok && !isUTF8(strings.TrimPrefix(charset, "=")) {
					return false
				}
			}
		}
	}
	return true
}

func isUTF8(charset string) bool {
	return slices.Contains([]string{"utf-8", "utf8"}, strings.TrimSpace(charset))
}

// isToken reports whether s is a name of a method or a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isValue reports whether s may be a header's value: one line, without control characters but tabs.
func isValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// checkHeader says why a guest must not set a header.
func checkHeader(name, value string) *answer.Failure {
	switch {
	case !isToken(name):
		return answer.Failf(answer.Invalid, "A header has a name that is not valid: %.80q.", name)
	case isReserved(name):
		return answer.Failf(answer.Invalid, "The header %.80s can't be set: the host sets it if it is needed.", name)
	case !isValue(value):
		return answer.Failf(answer.Invalid, "The header %.80s has a control character in its value.", name)
	}
	return nil
}

// A header is one that the host sets.
type header struct {
	on    reach.Pattern
	name  string // canonical
	value []part
}

// A part of a value is a text, and then what is filled in, or nothing.
type part struct {
	text   string
	secret string // the name of one; of each caller's own with [secret.OfPrincipal] behind it
	caller bool   // who calls
}

// A headerKey is where a header stands in a configuration, as it is written there.
type headerKey struct{ on, name string }

func (k headerKey) String() string { return fmt.Sprintf("%.80q under %.200q", k.name, k.on) }

// parseHeaders reads the headers of a grant. Those of a longer pattern come later, so that they hold where two set the same. Two of one
// pattern must not, however they are written: which of them is meant nobody knows.
func parseHeaders(table map[string]map[string]string, granted []reach.Pattern) (headers []header, err error) {
	keys := map[headerKey]headerKey{} // by patterns and folded names
	for _, key := range slices.Sorted(maps.Keys(table)) {
		on, err := reach.ParsePattern(key)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(granted, on.Overlaps) {
			return nil, fmt.Errorf("an entry is for a place that http does not grant; it grants %s", list(granted))
		}
		for _, name := range slices.Sorted(maps.Keys(table[key])) {
			value := table[key][name]
			if f := checkHeader(name, value); f != nil {
				return nil, errors.New(f.Message)
			}
			one, this := headerKey{on.String(), fold(name)}, headerKey{key, name}
			if other, ok := keys[one]; ok {
				return nil, fmt.Errorf("%v and %v set the same header of the same requests: keep one of them", other, this)
			}
			keys[one] = this
			parts, err := parseTemplate(value)
			if err != nil {
				return nil, fmt.Errorf("a value: %w", err)
			}
			headers = append(headers, header{on, http.CanonicalHeaderKey(name), parts})
		}
	}
	slices.SortFunc(headers, func(a, b header) int {
		if by := len(a.on.String()) - len(b.on.String()); by != 0 {
			return by
		}
		return strings.Compare(a.on.String()+" "+a.name, b.on.String()+" "+b.name)
	})
	return headers, nil
}

// parseTemplate splits a value at its ${secret:name}, ${secret:name@principal} and ${principal}.
func parseTemplate(s string) (parts []part, err error) {
	for {
		text, rest, found := strings.Cut(s, "${")
		if !found {
			return append(parts, part{text: text}), nil
		}
		inner, after, closed := strings.Cut(rest, "}")
		name, isSecret := strings.CutPrefix(inner, "secret:")
		switch {
		case closed && inner == "principal":
			parts = append(parts, part{text: text, caller: true})
		case !closed || !isSecret || name == "":
			return nil, errors.New("${ must be followed by secret:, a name and }, as in ${secret:api_key}, or be ${principal}")
		case strings.Contains(name, "@") && (strings.Count(name, "@") > 1 || !strings.HasSuffix(name, secret.OfPrincipal) || secret.CheckName(strings.TrimSuffix(name, secret.OfPrincipal)) != nil):
			return nil, errors.New("the name of a secret can be followed by @principal only, as in ${secret:api_key@principal}, which is each caller's own")
		default:
			parts = append(parts, part{text: text, secret: name})
		}
		s = after
	}
}

// secretNames returns the names of the secrets that headers have, sorted.
func secretNames(headers []header) (names []string) {
	for _, h := range headers {
		for _, p := range h.value {
			if p.secret != "" {
				names = append(names, p.secret)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A filling is where headers are filled in from.
type filling struct {
	secrets Secrets
	who     *wasmtools.Principal
	missing func(name string) // is told that who has no secret of its own of that name
}

// inject sets the headers that the rule has for t, in place of the guest's of the same name. It reports whether a secret was put in.
// What is wrong with a secret is not told: the message is for the guest.
func (r *rule) inject(t reach.Target, headers http.Header, from filling) (secret bool, f *answer.Failure) {
	for _, h := range r.headers {
		if !h.on.Match(t) {
			continue
		}
		value := ""
		for _, p := range h.value {
			filled, f := from.fill(&h, p, t)
			if f != nil {
				return false, f
			}
			if !isValue(filled) || len(value)+len(p.text)+len(filled) > maxInjected {
				return false, unfillable(&h, t)
			}
			value, secret = value+p.text+filled, secret || p.secret != ""
		}
		for name := range headers {
			if fold(name) == fold(h.name) {
				delete(headers, name)
			}
		}
		headers[h.name] = []string{value}
	}
	return secret, nil
}

// fill returns what stands for a part of a header. A secret of the caller's own is never replaced by another one.
func (from filling) fill(h *header, p part, t reach.Target) (string, *answer.Failure) {
	own, isOwn := strings.CutSuffix(p.secret, secret.OfPrincipal)
	switch {
	case p.secret != "" && !isOwn:
		s, err := from.secrets.Secret(p.secret)
		if err != nil {
			return "", unfillable(h, t)
		}
		return s, nil
	case !isOwn && !p.caller:
		return "", nil
	}
	id, err := personal.Of(from.who)
	if err != nil {
		return "", answer.Failf(codeNoSecret, "The header %s for %s needs the caller's own secret, and this caller can't have one: it has no credentials, or its token has no name.", h.name, t.Origin)
	}
	if p.caller {
		return string(id), nil
	}
	s, ok := from.secrets.Own(own, id)
	if !ok {
		from.missing(own)
		return "", answer.Failf(codeNoSecret, "The caller has not set its secret %q, which the operator's grant puts into requests to %s: set it with `toolsrv secrets set %[1]s`, or ask the operator for it.", own, t.Origin)
	}
	return s, nil
}

func unfillable(h *header, t reach.Target) *answer.Failure {
	return answer.Failf(answer.Unavailable, "The host can't fill in the header %s that the operator sets for %s: its secret is missing, or can't be used in a header.", h.name, t.Origin)
}

// elsewhere keeps the headers of a guest that may follow a redirect to another origin: what says how to answer, and nothing
// that may be a key.
func elsewhere(headers http.Header) http.Header {
	kept := http.Header{}
	for _, name := range []string{"Accept", "Accept-Language", "Content-Language", "Content-Type", "User-Agent"} {
		if values, ok := headers[name]; ok {
			kept[name] = values
		}
	}
	return kept
}
