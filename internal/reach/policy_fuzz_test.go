package reach_test

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/reach/reachtest"
)

// FuzzPolicy compares the policy with an oracle that shares nothing with it: regular expressions for URLs, for patterns, and for
// the URLs that a pattern matches. Allowed URLs are also read by other parsers, which must find the host that was allowed.
// Proves: Requests go only where they were granted
func FuzzPolicy(f *testing.F) {
	for _, c := range reachtest.URLs(f) {
		f.Add(c.Grant, c.Grant, c.URL)
	}
	f.Add("https://*.example.com", "https://a.example.com/v2", "https://a.example.com/v2/x")
	f.Add("http://*", "http://[2606::1]:80/x/", "http://[2606:0::1]/x/y")
	f.Add("https://1.2.3.4", "https://*", "https://1.2.3.4")
	f.Fuzz(func(t *testing.T, needed, granted, request string) {
		need, needErr := reach.ParsePattern(needed)
		grant, grantErr := reach.ParsePattern(granted)
		for p, err := range map[string]error{needed: needErr, granted: grantErr} {
			if want := oraclePattern(p) != nil; (err == nil) != want {
				t.Fatalf("the pattern %q: got %v, the oracle says valid: %t", p, err, want)
			}
		}
		target, err := reach.ParseTarget(request)
		allowed := needErr == nil && grantErr == nil && err == nil && reach.Allowed([]reach.Pattern{need}, []reach.Pattern{grant}, target)
		u := oracleURL(request)
		if (err == nil) != (u != nil) {
			t.Fatalf("%q: got %v, the oracle has %v", request, err, u)
		}
		want := oracleMatch(oraclePattern(needed), u) && oracleMatch(oraclePattern(granted), u)
		if allowed != want {
			t.Fatalf("%q needed by %q and granted by %q: got %t, want %t", request, needed, granted, allowed, want)
		}
		if allowed && (!need.Overlaps(grant) || !grant.Overlaps(need)) {
			t.Errorf("%q is in both %q and %q, which are said not to overlap", request, needed, granted)
		}
		if err != nil {
			return
		}
		for _, spelling := range []string{request, target.String()} {
			for name, read := range readers {
				if host := read(spelling); host != target.Host {
					t.Errorf("%q is for %s, but %s reads %q in %q", request, target.Host, name, host, spelling)
				}
			}
		}
	})
}

// The oracle's grammar.
const (
	oracleName = `(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?`
	oracleHost = `(\[[0-9a-f:.]+\]|\*|(?:\*\.)?` + oracleName + `)`
	oraclePort = `(?::([1-9][0-9]{0,4}))?`
)

var (
	urlForm       = regexp.MustCompile(`^((?i)https?)://(?i)` + oracleHost + oraclePort + `(/(?:[-!$&'()*+,./:;=@_~0-9A-Za-z]|%[0-9A-Fa-f]{2})*)?(?:\?(?:[-!$&'()*+,./:;=?@\[\]_~0-9A-Za-z]|%[0-9A-Fa-f]{2})*)?(?:#(?:[-!#$&'()*+,./:;=?@\[\]_~0-9A-Za-z]|%[0-9A-Fa-f]{2})*)?$`)
	patternForm   = regexp.MustCompile(`^((?i)https?)://(?i)` + oracleHost + oraclePort + `(/[-/._~@:+=,0-9A-Za-z]*)?$`)
	oracleDots    = regexp.MustCompile(`(?i)^(\.|%2e){1,2}(;.*|%3b.*)?$`)
	oracleLast    = regexp.MustCompile(`(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$`)
	oracleV4      = regexp.MustCompile(`^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.|$)){4}$`)
	oracleForeign = regexp.MustCompile(`[^!-~]`)
	oracleBad     = regexp.MustCompile(`(?i)%(?:[01][0-9a-f]|7f)`)
	oracleVague   = regexp.MustCompile(`(?i)%2f|%5c|%25|%23|%3f|/(?:\.|%2e|%20)+(?:/|;|%3b|$)`)
	oracleOdd     = regexp.MustCompile(`[^ -~\p{L}\p{M}\p{Nd}]|[\x{34f}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180f}\x{3164}\x{fe00}-\x{fe0f}\x{ffa0}\x{e0100}-\x{e01ef}]`)
	oracleBeyond  = regexp.MustCompile(`[^ -~]`)
	oracleUp      = regexp.MustCompile(`/[. ]*\.\.[. ]*(?:[;/]|$)`)
)

// parts are scheme, host, port and path.
type parts struct{ scheme, host, port, path string }

func oracleParts(form *regexp.Regexp, s string) *parts {
	m := form.FindStringSubmatch(s)
	if m == nil || len(s) > 8192 || oracleForeign.MatchString(s) { // without regard to case, s also matches the long s
		return nil
	}
	p := &parts{strings.ToLower(m[1]), strings.ToLower(m[2]), m[3], m[4]}
	if p.port == "" {
		p.port = map[string]string{"http": "80", "https": "443"}[p.scheme]
	}
	if len(p.port) == 5 && p.port > "65535" {
		return nil
	}
	if p.path == "" {
		p.path = "/"
		if form == urlForm && strings.Contains(s[len(p.scheme)+3:], "?") || strings.Contains(s, "#") && !strings.Contains(s[8:], "/") {
			return nil
		}
	}
	if rest := s[len(p.scheme)+3:]; strings.ContainsAny(rest, "?#") && strings.IndexAny(rest, "?#") < strings.IndexByte(rest+"/", '/') {
		return nil
	}
	if bare, ok := strings.CutPrefix(p.host, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(bare, "]"))
		if err != nil || a.Is4() || a.Is4In6() {
			return nil
		}
		p.host = a.String()
	} else if oracleLast.MatchString(p.host) && !oracleV4.MatchString(p.host) || len(strings.TrimPrefix(p.host, "*.")) > 253 {
		return nil
	}
	if strings.HasPrefix(p.path, "//") || oracleBad.MatchString(p.path) {
		return nil
	}
	for segment := range strings.SplitSeq(p.path, "/") {
		if oracleDots.MatchString(segment) {
			return nil
		}
	}
	return p
}

func oracleURL(s string) *parts {
	p := oracleParts(urlForm, s)
	if p == nil || strings.HasPrefix(p.host, "*") {
		return nil
	}
	return p
}

func oraclePattern(s string) *parts {
	p := oracleParts(patternForm, s)
	if p == nil || strings.HasPrefix(p.host, "*.") && strings.Count(p.host, ".") < 2 || strings.Contains(p.path, "//") {
		return nil
	}
	return p
}

// oracleMatch makes a regular expression of the pattern.
func oracleMatch(p, u *parts) bool {
	if p == nil || u == nil {
		return false
	}
	host := regexp.QuoteMeta(p.host)
	switch {
	case p.host == "*":
		host = `.+`
	case strings.HasPrefix(p.host, "*."):
		host = `.+` + regexp.QuoteMeta(p.host[1:])
	}
	path := `/.*`
	if p.path != "/" {
		path = regexp.QuoteMeta(strings.TrimSuffix(p.path, "/")) + map[bool]string{true: `/.*`, false: `(?:/.*)?`}[strings.HasSuffix(p.path, "/")]
		if decoded, err := url.PathUnescape(u.path); err != nil || strings.ToValidUTF8(decoded, "") != decoded || oracleVague.MatchString(u.path) || oracleOdd.MatchString(decoded) ||
			oracleUp.MatchString(oracleBeyond.ReplaceAllString(decoded, "")) {
			return false
		}
	}
	whole := regexp.MustCompile(fmt.Sprintf(`^%s %s %s %s$`, p.scheme, host, p.port, path))
	return whole.MatchString(fmt.Sprintf("%s %s %s %s", u.scheme, u.host, u.port, u.path))
}

var (
	rfc3986Host = regexp.MustCompile(`^(?:[^:/?#]+):(?://([^/?#]*))?`)
	browserHost = regexp.MustCompile(`^[a-zA-Z]+:/*([^/?#]*)`)
	naiveHost   = regexp.MustCompile(`^[a-zA-Z]+://([^/\s]*)`)
	lastPort    = regexp.MustCompile(`:[0-9]*$`)
)

// readers are the ways in which other programs find the host of a URL.
var readers = map[string]func(string) string{
	"net/url": func(s string) string {
		u, err := url.Parse(s)
		if err != nil {
			return err.Error()
		}
		return canonical(u.Hostname())
	},
	"RFC 3986": func(s string) string {
		return hostOf(rfc3986Host.FindStringSubmatch(s), "@")
	},
	"a browser": func(s string) string {
		s = strings.Trim(strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(s), " \x00\x1f")
		m := browserHost.FindStringSubmatch(s)
		for i := range m {
			if plain, err := url.PathUnescape(m[i]); err == nil {
				m[i] = plain
			}
		}
		return hostOf(m, "@")
	},
	"a program that reads up to the first slash or space, and skips everything before the first at sign": func(s string) string {
		return hostOf(naiveHost.FindStringSubmatch(s), "")
	},
}

func hostOf(match []string, user string) string {
	if len(match) != 2 {
		return "nothing"
	}
	host := match[1]
	if user != "" {
		host = host[strings.LastIndex(host, user)+1:]
	} else if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	return canonical(strings.TrimSuffix(strings.Trim(lastPort.ReplaceAllString(host, ""), "[]"), "."))
}

func canonical(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String()
	}
	return strings.ToLower(host)
}
