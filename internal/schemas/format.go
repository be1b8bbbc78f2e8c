package schemas

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"time"
)

// formats are the formats that are checked. Each function accepts any text.
var formats = map[string]func(string) bool{
	"date-time": isDateTime, "date": isDate, "time": isTime, "duration": isDuration, "period": isPeriod,
	"hostname": isHostname, "email": isEmail, "ipv4": isIPv4, "ip-address": isIPv4, "ipv6": isIPv6,
	"uri": isURI, "iri": isURI, "uri-reference": isURIReference, "uriref": isURIReference, "iri-reference": isURIReference, "uri-template": isURITemplate,
	"json-pointer": isPointer, "relative-json-pointer": isRelativePointer, "uuid": isUUID, "regex": isPattern,
}

// isDateTime follows RFC 3339, section 5.6.
func isDateTime(s string) bool {
	return len(s) > 11 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isTime follows RFC 3339, too. A leap second must be the last second of a UTC day.
func isTime(s string) bool {
	hour, s, ok1 := twoDigits(s, 23, ':')
	minute, s, ok2 := twoDigits(s, 59, ':')
	second, s, ok3 := twoDigits(s, 60, 0)
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	if fraction, ok := strings.CutPrefix(s, "."); ok {
		if s = strings.TrimLeft(fraction, digits); s == fraction {
			return false
		}
	}
	ahead := 0 // offset from UTC in minutes
	if s != "Z" && s != "z" {
		if s == "" || s[0] != '+' && s[0] != '-' {
			return false
		}
		hours, rest, ok1 := twoDigits(s[1:], 23, ':')
		minutes, rest, ok2 := twoDigits(rest, 59, 0)
		if !ok1 || !ok2 || rest != "" {
			return false
		}
		if ahead = 60*hours + minutes; s[0] == '-' {
			ahead = -ahead
		}
	}
	const day = 24 * 60
	return second < 60 || (60*hour+minute-ahead+day)%day == day-1
}

// twoDigits reads a number of two digits that does not exceed most, and then the character next, unless next is 0. It returns the rest.
func twoDigits(s string, most int, next byte) (n int, rest string, ok bool) {
	if len(s) < 2 || strings.Trim(s[:2], digits) != "" {
		return 0, "", false
	}
	n, rest = 10*int(s[0]-'0')+int(s[1]-'0'), s[2:]
	if next != 0 {
		if rest == "" || rest[0] != next {
			return 0, "", false
		}
		rest = rest[1:]
	}
	return n, rest, n <= most
}

// isDuration follows RFC 3339, appendix A.
func isDuration(s string) bool {
	s, ok := strings.CutPrefix(s, "P")
	if !ok {
		return false
	}
	days, clock, hasClock := strings.Cut(s, "T")
	if hasClock {
		return (days == "" || hasUnits(days, "YMD")) && hasUnits(clock, "HMS")
	}
	return hasUnits(days, "YMD") || hasUnits(days, "W")
}

// hasUnits reports whether s consists of numbers, each followed by its unit. The units must be consecutive ones of the list.
func hasUnits(s, units string) bool {
	found := ""
	for s != "" {
		rest := strings.TrimLeft(s, digits)
		if rest == s || rest == "" {
			return false
		}
		found, s = found+rest[:1], rest[1:]
	}
	return found != "" && strings.Contains(units, found)
}

// isPeriod follows RFC 3339, appendix A.
func isPeriod(s string) bool {
	from, to, ok := strings.Cut(s, "/")
	return ok && (isDateTime(from) && (isDateTime(to) || isDuration(to)) || isDuration(from) && isDateTime(to))
}

// isHostname follows RFC 1123, section 2.1. A dot at the end stands for the root of all names.
func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, letters+digits+"-") != "" {
			return false
		}
	}
	return true
}

// isEmail follows RFC 5321, section 4.1.2.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || at > 64 || len(s) > 254 {
		return false
	}
	domain := s[at+1:]
	if literal, ok := strings.CutPrefix(domain, "["); ok {
		literal, ok = strings.CutSuffix(literal, "]")
		if v6, is := strings.CutPrefix(literal, "IPv6:"); is {
			return ok && isIPv6(v6)
		}
		return ok && isIPv4(literal)
	}
	_, err := mail.ParseAddress(s)
	return err == nil && isHostname(domain)
}

func isIPv4(s string) bool {
	address, err := netip.ParseAddr(s)
	return err == nil && address.Is4()
}

func isIPv6(s string) bool {
	address, err := netip.ParseAddr(s)
	return err == nil && address.Is6() && address.Zone() == ""
}

// isURI follows RFC 3986, and also allows the characters of RFC 3987.
func isURI(s string) bool {
	u, ok := parseAddress(s)
	return ok && u.IsAbs()
}

func isURIReference(s string) bool {
	_, ok := parseAddress(s)
	return ok && !strings.Contains(s, `\`)
}

func parseAddress(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, false
	}
	if host := u.Hostname(); strings.Contains(host, ":") && (!strings.HasPrefix(u.Host, "[") || !isIPv6(host)) {
		return nil, false
	}
	return u, true
}

// uriTemplate is RFC 6570's grammar. It takes time to compile, and few schemas have it.
var uriTemplate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[^\x00-\x20\x7f"%<>\\^\x60{|}]|%[0-9A-Fa-f]{2}|\{[+#./;?&=,!@|]?` +
		`(?:[\w.]|%[0-9A-Fa-f]{2})+(?:\*|:[1-9]\d{0,3})?(?:,(?:[\w.]|%[0-9A-Fa-f]{2})+(?:\*|:[1-9]\d{0,3})?)*\})*$`)
})

func isURITemplate(s string) bool { return uriTemplate().MatchString(s) }

func isPattern(s string) bool {
	_, err := syntax.Parse(fromECMA(s), syntax.Perl)
	return err == nil
}

// isPointer follows RFC 6901.
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := strings.IndexByte(s, '~'); i >= 0; i = strings.IndexByte(s, '~') {
		if s = s[i+1:]; s == "" || s[0] != '0' && s[0] != '1' {
			return false
		}
	}
	return true
}

// isRelativePointer follows draft-handrews-relative-json-pointer-01.
func isRelativePointer(s string) bool {
	rest := strings.TrimLeft(s, digits)
	number := s[:len(s)-len(rest)]
	return number != "" && (number == "0" || number[0] != '0') && (rest == "#" || isPointer(rest))
}

// isUUID follows RFC 4122.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if isDash := i == 8 || i == 13 || i == 18 || i == 23; isDash != (s[i] == '-') || !isDash && strings.IndexByte(digits+"abcdefABCDEF", s[i]) < 0 {
			return false
		}
	}
	return true
}
