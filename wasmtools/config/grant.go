package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A Grant is what the tools that Match matches may reach, of what they declare that they need.
type Grant struct {
	// Match is a path such as "weather/now" or a pattern such as "weather/*"; see docs/configuration.md.
	Match string
	// HTTP are origins, with or without the prefix of a path, such as "https://api.example.com" or "https://*.example.com/v2/".
	HTTP []string
	// Private are special addresses that HTTP may reach all the same.
	Private []netip.Prefix
	// Redirects is how many redirects are followed for the tool. 0: it gets the answers 3xx themselves.
	Redirects int
	// Headers are those that are put into requests, by the origins of HTTP and by their names. In a value, ${secret:name} stands for a
	// secret.
	Headers map[string]map[string]string
	// CA is a file with certificates, PEM, that HTTP trusts beside those of the system, or empty.
	CA string
	// HTTPRequests is how many requests a call may send, HTTPRequestBytes and HTTPResponseBytes bound the body of one and of its answer, and
	// HTTPTimeout is how long one may take; 0: the defaults of package egress.
	HTTPRequests                        int
	HTTPRequestBytes, HTTPResponseBytes int64
	HTTPTimeout                         time.Duration
	// KV is how many bytes of keys and values may be kept; 0: none. KVEntries is how many keys; 0: DefaultKVEntries.
	KV        int64
	KVEntries int
	// Config are the settings, a JSON object with its members in order, or nil.
	Config json.RawMessage
	// Files are directories, by the names that tools know them by.
	Files map[string]string
	// Tools are paths or patterns of tools that may be called.
	Tools []string
	// Line is that of the file where the grant begins; 0: it was not read from a file.
	Line int
	// SecretsVisible are the names of secrets that the tools themselves may see.
	SecretsVisible []string
}

// Secrets is the table [secrets]: where secrets are. Of those with one name, Files count before Environment, and that before
// Directory.
type Secrets struct {
	// Directory has a file for each secret, which is called as it is, or is empty.
	Directory string
	// Files are those of secrets that lie elsewhere, by the names of the secrets.
	Files map[string]string
	// Environment are the variables of secrets, by the names of the secrets.
	Environment map[string]string
	// Lines are those of the configuration where entries of Files and Environment stand, by the names of the secrets. Errors tell them in
	// place of names, which may be secrets in the wrong place. It may be nil.
	Lines map[string]int
}

// State is the table [state].
type State struct {
	// Directory is where tools' keys and values are kept, or empty.
	Directory string `restart:"state.directory"`
}

// The ranges of what can be granted. The table in docs/configuration.md repeats them.
const (
	maxGrants    = 1000
	maxRedirects = 10
	maxRequests  = 10_000
	maxBody      = 1 << 30 // bytes
	minKV        = 4 << 10 // bytes
	maxKV        = 1 << 40
	maxKVEntries = 100_000_000
	maxHeader    = 8 << 10  // bytes of a name or a value
	maxSettings  = 64 << 10 // bytes of JSON

	// DefaultKVEntries is how many keys may be kept where a grant does not say.
	DefaultKVEntries = 100_000
)

// grantTable returns the readers of the keys of [[grant]].
func grantTable(g *Grant, directory string) table {
	return table{
		"match":     word(&g.Match, `a pattern such as "math/*"`, aPattern),
		"http":      words(&g.HTTP, service),
		"private":   list(`a list such as ["10.0.0.0/8"]`, prefix(&g.Private)),
		"redirects": quantity(limits.Count, 0, maxRedirects, func(n int64) { g.Redirects = int(n) }),
		"headers": entries(&g.Headers, `a table such as {"https://api.example.com" = {Authorization = "Bearer ${secret:key}"}}`, service,
			func(to *map[string]string) reader {
				return entries(to, `a table such as {Authorization = "Bearer ${secret:key}"}`, headerName,
					func(to *string) reader { return word(to, "a string", headerValue) })
			}),
		"ca":                  word(&g.CA, "a path", path(directory, true)),
		"http_requests":       quantity(limits.Count, 1, maxRequests, func(n int64) { g.HTTPRequests = int(n) }),
		"http_request_bytes":  quantity(limits.Bytes, 1, maxBody, func(n int64) { g.HTTPRequestBytes = n }),
		"http_response_bytes": quantity(limits.Bytes, 1, maxBody, func(n int64) { g.HTTPResponseBytes = n }),
		"http_timeout":        quantity(limits.Time, int64(time.Millisecond), int64(time.Hour), func(n int64) { g.HTTPTimeout = time.Duration(n) }),
		"kv":                  zeroOr(&g.KV, quantity(limits.Bytes, minKV, maxKV, func(n int64) { g.KV = n })),
		"kv_entries":          quantity(limits.Count, 1, maxKVEntries, func(n int64) { g.KVEntries = int(n) }),
		"config":              settings(&g.Config),
		"files": entries(&g.Files, `a table such as {geo = "/srv/geo"}`, plainName,
			func(to *string) reader { return word(to, "a path", path(directory, true)) }),
		"tools":           words(&g.Tools, aPattern),
		"secrets_visible": words(&g.SecretsVisible, secretName),
	}
}

// secretsTable returns the readers of the keys of [secrets].
func secretsTable(s *Secrets, directory string) table {
	return table{
		"directory": word(&s.Directory, "a path", path(directory, false)),
		"files": entries(&s.Files, `a table such as {api_key = "/etc/api.key"}`, secretName,
			func(to *string) reader { return word(to, "a path", path(directory, true)) }),
		"environment": entries(&s.Environment, `a table such as {api_key = "API_KEY"}`, secretName,
			func(to *string) reader { return word(to, "the name of a variable", variable) }),
	}
}

// noteLines notes where the entries of [secrets] stand.
func (d *document) noteLines(s *Secrets) {
	for _, list := range []struct {
		name    string
		entries map[string]string
	}{{"environment", s.Environment}, {"files", s.Files}} {
		for name := range list.entries {
			if s.Lines == nil {
				s.Lines = map[string]int{}
			}
			s.Lines[name] = d.line(d.offsets[join(join("secrets", list.name), name)])
		}
	}
}

// stateTable returns the readers of the keys of [state].
func stateTable(s *State, directory string) table {
	return table{"directory": word(&s.Directory, "a path", path(directory, false))}
}

// grants reads the tables [[grant]]. Where match is missing, all is what it is; without all, that is an error.
func (d *document) grants(to *[]Grant, directory, all string) reader {
	return tableList(d, "grant", maxGrants, fewPatterns, to, func(place string, values map[string]any, g *Grant) {
		g.Match, g.Line = all, d.line(d.offsets[place])
		d.readTable(place, values, grantTable(g, directory))
		if _, ok := values["match"]; !ok && all == "" {
			d.fail(place, errors.New(`match is missing: name the tools, as in match = "math/*"`))
		}
		for _, origin := range slices.Sorted(maps.Keys(g.Headers)) {
			if !slices.Contains(g.HTTP, origin) {
				d.fail(place+".headers", &memberError{origin, errors.New("it is not in the grant's http: repeat an entry of that, as it stands there")})
			}
		}
	})
}

// LoadGrants reads a file that has only the tables [[grant]], [secrets] and [state], and adds what it grants to c. A grant may do without
// match: it is for every tool then. Paths in the file are relative to directory.
func (c *Config) LoadGrants(file, directory string) error {
	text, err := readFile(file)
	if err != nil {
		return fmt.Errorf("read the grants: %w", err)
	}
	d := &document{scanner: scanner{name: file, text: text}}
	values, err := d.parse()
	if err != nil {
		return err
	}
	var granted []Grant
	secrets, state := c.Secrets, c.State
	d.known = map[string]table{"secrets": secretsTable(&secrets, directory), "state": stateTable(&state, directory)}
	top := table{"grant": d.grants(&granted, directory, everyTool)}
	for name, t := range d.known {
		top[name] = d.table(name, t)
	}
	d.readTable("", values, top)
	if err := d.err(); err != nil {
		return err
	}
	d.noteLines(&secrets)
	c.Grants, c.Secrets, c.State = append(slices.Clip(c.Grants), granted...), secrets, state
	return nil
}

// everyTool is the pattern of all tools.
const everyTool = "**"

// ForEveryTool reports whether a grant is for every tool that there is and will be.
func (g *Grant) ForEveryTool() bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(g.Match, "/"), "/") {
		if part != "*" && part != everyTool {
			return false
		}
	}
	return true
}

// entries reads a table of names and values.
func entries[T any](to *map[string]T, want string, check func(string) (string, error), read func(to *T) reader) reader {
	return func(value any) error {
		values, ok := value.(map[string]any)
		if !ok {
			return wrongType(value, want)
		}
		if len(values) > 0 {
			*to = make(map[string]T, len(values))
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			checked, err := check(name)
			var entry T
			if err == nil {
				err = read(&entry)(values[name])
			}
			if err != nil {
				return &memberError{name, err}
			}
			(*to)[checked] = entry
		}
		return nil
	}
}

// A memberError is what is wrong with one member of a table.
type memberError struct {
	name string
	err  error
}

func (e *memberError) Error() string { return e.err.Error() }

// prefix reads a range of addresses.
func prefix(to *[]netip.Prefix) reader {
	return func(value any) error {
		var s string
		return word(&s, `a range of addresses such as "10.0.0.0/8"`, func(s string) (string, error) {
			p, err := netip.ParsePrefix(s)
			if err != nil {
				return "", fmt.Errorf("%q is not a range of addresses: use one such as \"10.0.0.0/8\" or \"fd00::/8\"", text.Short(s))
			}
			if p != p.Masked() {
				return "", fmt.Errorf("%q has bits beyond its prefix: write %q", text.Short(s), p.Masked())
			}
			if p.Bits() == 0 {
				return "", fmt.Errorf("%q covers all addresses: name the ranges", text.Short(s))
			}
			if p.Addr().Is4In6() {
				return "", fmt.Errorf("%q is a range of IPv4 in the form of IPv6: write it as one of IPv4", text.Short(s))
			}
			*to = append(*to, p)
			return s, nil
		})(value)
	}
}

// settings reads a table of any content as JSON.
func settings(to *json.RawMessage) reader {
	return func(value any) error {
		if _, ok := value.(map[string]any); !ok {
			return wrongType(value, `a table such as {units = "metric"}`)
		}
		if err := isJSON(value); err != nil {
			return err
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil { // it writes members in the order of their names
			return err
		}
		if b.Len() > maxSettings {
			return fmt.Errorf("has %d bytes as JSON; at most %d are allowed", b.Len(), maxSettings)
		}
		*to = bytes.TrimSpace(b.Bytes())
		return nil
	}
}

// isJSON reports what of a value JSON does not have.
func isJSON(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := isJSON(v[name]); err != nil {
				return &memberError{name, err}
			}
		}
	case []any:
		for i := range v {
			if err := isJSON(v[i]); err != nil {
				return &elementError{i, err}
			}
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("is not a number that JSON has")
		}
	case string, int64, bool:
	default:
		return errors.New("must not be a date or time: write it as a string")
	}
	return nil
}

// aPattern checks a pattern of tools.
func aPattern(s string) (string, error) { return s, pattern.Check(s) }

// service checks an origin, with or without the prefix of a path.
func service(s string) (string, error) {
	_, err := reach.ParsePattern(s)
	return s, err
}

// headerName checks the name of a header.
func headerName(s string) (string, error) {
	if s == "" || len(s) > maxHeader || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(bare+"!#$%&'*+.^`|~", r) }) {
		return "", fmt.Errorf("%q is not the name of a header", text.Short(s))
	}
	return s, nil
}

// headerValue checks the value of a header. It does not show it, because it may be a secret.
func headerValue(s string) (string, error) {
	if len(s) > maxHeader || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) {
		return "", fmt.Errorf("is not a value for a header: use printable ASCII, at most %d bytes", maxHeader)
	}
	return s, nil
}

// plainName checks a name that tools know something by.
func plainName(s string) (string, error) {
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(bare, r) }) {
		return "", fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 _ and -", text.Short(s))
	}
	return s, nil
}

// secretName checks the name of a secret, as wasmtools.CheckSecretName does.
func secretName(s string) (string, error) {
	if _, err := plainName(strings.ReplaceAll(s, ".", "_")); err != nil || s[0] == '.' {
		return "", fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 . _ and -, without a dot at the beginning", text.Short(s))
	}
	return s, nil
}

// variable checks the name of an environment variable.
func variable(s string) (string, error) {
	if s == "" || len(s) > maxText || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' }) {
		return "", fmt.Errorf("%q is not the name of an environment variable", text.Short(s))
	}
	return s, nil
}
