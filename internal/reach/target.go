package reach

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxURL is the longest URL in bytes.
const MaxURL = 8 << 10

// An Origin is where a server listens.
type Origin struct {
	// Scheme is https or http.
	Scheme string
	// Host is a name in lower case without a dot at its end, or an address as netip.Addr.String has it, without brackets.
	Host string
	// Port is never 0.
	Port uint16
}

// A Target is the parsed URL of a request. The zero Target is not valid.
type Target struct {
	Origin
	// Path is the path as it is sent, with its escapes. It begins with a slash.
	Path string
	// Query is the query as it is sent, without its question mark. HasQuery tells "/?" from "/".
	Query    string
	HasQuery bool

	firm bool // whether Path is firm: computed once, as there may be many patterns
}

// ParseTarget reads the URL of a request. Its errors are for the author of the tool; they don't repeat the URL.
func ParseTarget(url string) (Target, error) {
	if len(url) > MaxURL {
		return Target{}, fmt.Errorf("the URL has %d bytes; the limit is %d", len(url), MaxURL)
	}
	for i := range len(url) {
		switch c := url[i]; {
		case c <= ' ' || c == 0x7f:
			return Target{}, fmt.Errorf("the URL has a space or a control character at byte %d: escape it, as in %%20", i)
		case c >= utf8.RuneSelf:
			return Target{}, fmt.Errorf("the URL has a character outside ASCII at byte %d: escape it, and write host names in Punycode", i)
		case strings.IndexByte("\\\"<>^`{|}", c) >= 0:
			return Target{}, fmt.Errorf("the URL has the character %q at byte %d: escape it", c, i)
		}
	}
	origin, rest, err := parseOrigin(url)
	if err != nil {
		return Target{}, err
	}
	if host := origin.Host; strings.HasPrefix(host, "*") {
		return Target{}, errors.New("the URL has a * as its host")
	}
	t := Target{Origin: origin}
	rest, fragment, _ := strings.Cut(rest, "#") // parseOrigin ends at a slash, so for every program this is a fragment
	t.Path, t.Query, t.HasQuery = strings.Cut(rest, "?")
	if t.Path == "" {
		t.Path = "/"
	}
	if err := checkPath(t.Path); err != nil {
		return Target{}, err
	}
	if strings.ContainsAny(t.Path, "[]") {
		return Target{}, errors.New("the path has a bracket: escape it")
	}
	if !escaped(t.Query) || !escaped(fragment) {
		return Target{}, errors.New("the query or the fragment has a % that does not begin an escape: write %25")
	}
	t.firm = firm(t.Path)
	return t, nil
}

// String returns the URL in the form that ParseTarget reads.
func (t Target) String() string {
	if t.HasQuery {
		return t.Origin.String() + t.Path + "?" + t.Query
	}
	return t.Origin.String() + t.Path
}

// String returns the origin as a URL without a path. It names the port if it is not the scheme's own.
func (o Origin) String() string {
	if o.Port == defaultPort(o.Scheme) {
		return o.Scheme + "://" + bracketed(o.Host)
	}
	return o.Scheme + "://" + o.Authority()
}

// Authority returns host and port in the form that a dialer takes.
func (o Origin) Authority() string { return bracketed(o.Host) + ":" + strconv.Itoa(int(o.Port)) }

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func defaultPort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// parseOrigin reads what is before the path. rest is empty or begins with the path's slash.
func parseOrigin(url string) (o Origin, rest string, err error) {
	scheme, rest, ok := strings.Cut(url, "://")
	o.Scheme = lower(scheme)
	if !ok || o.Scheme != "https" && o.Scheme != "http" {
		return o, "", errors.New("the URL does not begin with https:// or http://")
	}
	authority := rest
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		authority, rest = rest[:slash], rest[slash:]
	} else {
		rest = ""
	}
	if strings.ContainsAny(authority, "?#") {
		return o, "", errors.New("the URL has no slash between host and query: write one")
	}
	if strings.Contains(authority, "@") {
		return o, "", errors.New("the URL names a user: send it in a header")
	}
	host, port := authority, ""
	if colon := strings.LastIndexByte(authority, ':'); colon > strings.LastIndexByte(authority, ']') {
		if host, port = authority[:colon], authority[colon+1:]; port == "" {
			return o, "", errors.New("the URL has a colon after its host, but no port")
		}
	}
	o.Port = defaultPort(o.Scheme)
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return o, "", errors.New("the URL's port is not a number from 1 to 65535")
		}
		o.Port = uint16(n)
	}
	o.Host, err = parseHost(host)
	return o, rest, err
}

// lower is strings.ToLower for ASCII only, since strings.ToLower turns some other characters into ASCII.
func lower(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' }) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// The longest name and the longest label in DNS, in bytes.
const (
	maxName  = 253
	maxLabel = 63
)

// parseHost reads a name or an address. A name may begin with "*.", or be "*", though not in a Target.
func parseHost(host string) (string, error) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !ok || err != nil || !a.Is6() || a.Zone() != "" {
			return "", errors.New("the URL has brackets without an IPv6 address between them; a zone is not allowed")
		}
		if a.Is4In6() {
			return "", errors.New("the URL has an IPv4 address in IPv6 form: write it as IPv4")
		}
		return a.String(), nil
	}
	host = lower(host)
	if host == "*" {
		return host, nil
	}
	name := strings.TrimPrefix(host, "*.")
	if name == "" || len(name) > maxName {
		return "", fmt.Errorf("the URL has a host name of %d bytes; 1 to %d are valid", len(name), maxName)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" {
			return "", errors.New("the URL's host name has an extra dot; it must not end in one either")
		}
		if len(label) > maxLabel || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") || strings.Trim(label, nameChars) != "" {
			return "", errors.New("the URL's host name is not valid: use letters, digits, - and _, with dots between them")
		}
	}
	// By the browsers' URL standard, a host that ends in a number is an IPv4 address, in whatever form it is written.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is4() {
			return "", errors.New("the URL's host ends in a number, but is not an IPv4 address of four decimal numbers")
		}
		return a.String(), nil
	}
	return host, nil
}

const nameChars = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// checkPath refuses paths that some servers resolve or cut: those with dot segments in any spelling, control characters or an empty first segment.
func checkPath(path string) error {
	if strings.HasPrefix(path, "//") {
		return errors.New("the path begins with two slashes")
	}
	if !escaped(path) {
		return errors.New("the path has a % that does not begin an escape: write %25")
	}
	for segment := range strings.SplitSeq(path, "/") {
		plain := unescape(segment)
		if strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return errors.New("the path has an escaped control character")
		}
		// Some servers cut a segment at its parameters before they resolve dots.
		plain, _, _ = strings.Cut(plain, ";")
		if plain == "." || plain == ".." {
			return errors.New("the path has a . or .. segment: resolve it")
		}
	}
	return nil
}

// firm reports whether all servers read the path's segments alike, so that they agree on whether it is below a prefix. Any odd character in a segment
// counts as ambiguous.
func firm(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		plain := unescape(segment)
		if !utf8.ValidString(plain) || strings.ContainsFunc(plain, odd) {
			return false
		}
		name, _, _ := strings.Cut(plain, ";")
		if name != "" && strings.Trim(name, ". ") == "" {
			return false
		}
		// A server that only knows ASCII may drop the other characters, and see two dots.
		name = strings.Map(func(r rune) rune {
			if r >= utf8.RuneSelf {
				return -1
			}
			return r
		}, name)
		if strings.Contains(name, "..") && strings.Trim(name, ". ") == "" {
			return false
		}
	}
	return true
}

// odd reports whether some server may take a character for the end of a segment, or the character is beyond ASCII and not a visible letter, mark or
// digit. Servers fold such characters to dots, slashes and percent signs (full-width, small and mathematical forms), write them as a backslash (the
// yen and the won signs in Windows code pages), or drop them.
func odd(r rune) bool {
	if r < utf8.RuneSelf {
		return strings.ContainsRune(`/\%?#`, r)
	}
	return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escaped reports whether each % of s begins an escape.
func escaped(s string) bool {
	for i := range len(s) {
		if s[i] == '%' && (i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0) {
			return false
		}
	}
	return true
}

// unescape decodes the escapes of s once.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			b = append(b, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
