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

// These are the bounds of a request's headers.
const (
	maxHeaders     = 100      // how many headers a guest may set
	maxHeaderBytes = 32 << 10 // bytes of names and values together
	maxInjected    = 16 << 10 // bytes of a value that the host injects
)

// reserved are the headers that a guest must not set: they say where a request goes, where it ends and how it is encoded, or concern the connection.
// Package net/http would handle some of them itself, and send others. CGI programs see Proxy as HTTP_PROXY.
var reserved = []string{"accept-encoding", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy", "te", "trailer", "transfer-encoding", "upgrade"}

// fold returns a name as the most careless servers compare it: for CGI, everything except letters and digits becomes a _.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// asksForPart reports whether headers ask for a part of an answer, as any server may understand them.
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

// onlyUTF8 reports whether headers ask for no charset other than UTF-8. In charsets such as UTF-7 and EBCDIC, a server could repeat a secret in a
// form that is not found.
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
		case "accept": // the parameters of media types, even inside quotes
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

// isToken reports whether s can be the name of a method or a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isValue reports whether s may be a header's value: one line, with no control characters except tabs.
func isValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// checkHeader returns a failure if a guest must not set a header.
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

// A header is a header that the host sets.
type header struct {
	on    reach.Pattern
	name  string // canonical
	value []part
}

// A part is a part of a value: a text, followed by something to fill in, or nothing.
type part struct {
	text   string
	secret string // the name of a secret, followed by [secret.OfPrincipal] if each caller has its own
	caller bool   // who calls
}

// A headerKey is the key of a header in a configuration, as it is written there.
type headerKey struct{ on, name string }

func (k headerKey) String() string { return fmt.Sprintf("%.80q under %.200q", k.name, k.on) }

// parseHeaders reads the headers of a grant. Headers of a longer pattern come later, so that they win if both set the same one. Two entries for one
// pattern must not set the same header, however they are written, since it would be unclear which one is meant.
func parseHeaders(table map[string]map[string]string, granted []reach.Pattern) (headers []header, err error) {
	keys := map[headerKey]headerKey{} // keys by their patterns and folded names
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

// secretNames returns the sorted names of the secrets in headers.
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

// A filling is what headers are filled in from.
type filling struct {
	secrets Secrets
	who     *wasmtools.Principal
	missing func(name string) // called if the caller has no secret of its own with this name
}

// inject sets the headers that the rule has for t, in place of the guest's headers with the same names. It reports whether it put in a secret. The
// failure does not say what is wrong with a secret, since its message is for the guest.
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

// fill returns the text for a part of a header. If the caller lacks a secret of its own, no other one replaces it.
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

// elsewhere returns the guest's headers that may follow a redirect to another origin: those that say how to answer, and none that may contain a key.
func elsewhere(headers http.Header) http.Header {
	kept := http.Header{}
	for _, name := range []string{"Accept", "Accept-Language", "Content-Language", "Content-Type", "User-Agent"} {
		if values, ok := headers[name]; ok {
			kept[name] = values
		}
	}
	return kept
}
