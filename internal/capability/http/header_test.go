package http_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/redact"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// vault has secrets, which tests may change.
type vault struct {
	mu     sync.Mutex
	values map[string]string
}

func (v *vault) Secret(name string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s, ok := v.values[name]; ok {
		return s, nil
	}
	return "", errors.New("there is no such secret")
}

// Own looks up a caller's secret under its name, an @ and the caller.
func (v *vault) Own(name string, of personal.ID) (string, bool) {
	s, err := v.Secret(name + "@" + string(of))
	return s, err == nil
}

// RedactorsOf returns redactors for everything that a call of the caller may have put in.
func (v *vault) RedactorsOf(id personal.ID, _ secret.Names) redact.Chain {
	v.mu.Lock()
	defer v.mu.Unlock()
	var values []string
	for name, value := range v.values {
		if _, of, own := strings.Cut(name, "@"); !own || of == string(id) {
			values = append(values, value)
		}
	}
	return redact.Chain{redact.New(values...)}
}

const key = "sk_live_51H8mN2eZvKYlo2C0"

// inject returns a rule that injects the key into requests to a URL.
func inject(on string, granted ...string) httpcap.Rule {
	return httpcap.Rule{Granted: granted, Headers: map[string]map[string]string{on: {"Authorization": "Bearer ${secret:key}", "x-plain": "p"}}}
}

// TestInjected sends requests with headers of the guest and of the operator, and checks what a server gets.
// Proves: Secrets stay secret
func TestInjected(t *testing.T) {
	t.Parallel()
	plain := regexp.MustCompile(`(?i)^x[^a-z0-9]plain$`) // for a server that turns unknown characters into a _
	var got http.Header
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	secrets := &vault{values: map[string]string{"key": key}}
	g := grant(t, spec{Rule: inject(url+"/v2/", url), secrets: secrets})
	for _, test := range []struct {
		path    string
		headers [][]string
		want    string
	}{
		{"/v2/x", nil, "Bearer " + key},
		{"/v2/", [][]string{{"Authorization", "mine"}}, "Bearer " + key},
		{"/v2/", [][]string{{"AUTHORIZATION", "mine"}, {"authorization", "too"}}, "Bearer " + key},
		{"/v2/", [][]string{{"X_Plain", "mine"}}, "Bearer " + key},
		{"/v2/", [][]string{{"X.Plain", "mine"}, {"x~plain", "mine"}, {"X!plain", "mine"}, {"X|PLAIN", "mine"}}, "Bearer " + key},
		{"/v1/", nil, ""},
		{"/v1/", [][]string{{"Authorization", "mine"}}, "mine"},
		{"/v2", nil, ""},
		{"/V2/", nil, ""},
		{"/v2/a%2fb", nil, ""}, // a server may read this as another path
	} {
		if in := get(t, g, url+test.path, test.headers...); in.Status != 200 {
			t.Fatalf("%s: got %+v", test.path, in)
		}
		if values := got.Values("Authorization"); strings.Join(values, ",") != test.want {
			t.Errorf("%s with %v: the server got %v, want %q", test.path, test.headers, got, test.want)
		}
		for name, values := range got {
			if plain.MatchString(name) && strings.Join(values, ",") != "p" {
				t.Errorf("%s with %v: the server got %s: %v beside the operator's", test.path, test.headers, name, values)
			}
		}
	}
	for _, name := range []string{"Range", "if-range", "Request-Range", "Request.Range", "If_Range"} {
		if in := get(t, g, url+"/v2/", []string{name, "bytes=0-1"}); in.Code != "invalid" {
			t.Errorf("%s: got %+v", name, in)
		}
		if in := get(t, g, url+"/v1/", []string{name, "bytes=0-1"}); in.Status != 200 || got.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s without a secret: got %+v", name, in)
		}
	}
	for _, c := range []struct {
		name, value string
		refused     bool
	}{
		{"Accept-Charset", "utf-7", true},
		{"accept_charset", "UTF-8, IBM037;q=0.1", true},
		{"Accept-Charset", "*", true},
		{"Accept-Charset", "UTF-8;q=1", false},
		{"Accept", "text/plain;charset=IBM037", true},
		{"Accept", `text/html; level=1; Charset="utf-16", */*`, true},
		{"Accept", "text/html;charset = utf-7", true},
		{"Accept", `application/json; charset="utf-8", text/plain;q=0.5`, false},
	} {
		if in := get(t, g, url+"/v2/", []string{c.name, c.value}); (in.Code == "invalid") != c.refused {
			t.Errorf("%s: %s: got %+v", c.name, c.value, in)
		}
		if in := get(t, g, url+"/v1/", []string{c.name, c.value}); in.Status != 200 {
			t.Errorf("%s: %s without a secret: got %+v", c.name, c.value, in)
		}
	}
	rotated := "sk_live_rotated_0123456789"
	secrets.mu.Lock()
	secrets.values["key"] = rotated
	secrets.mu.Unlock()
	if get(t, g, url+"/v2/"); got.Get("Authorization") != "Bearer "+rotated {
		t.Errorf("after a rotation the server got %v", got)
	}
	for _, unfit := range []string{"with\r\nX: y, and more", "with\x00nothing in it", strings.Repeat("x", 20<<10)} {
		got, secrets.values["key"] = nil, unfit
		if in := get(t, g, url+"/v2/"); in.Code != "unavailable" || got != nil || strings.Contains(in.whole, "with") {
			t.Errorf("an unfit secret: got %+v", in)
		}
	}
	delete(secrets.values, "key")
	if in := get(t, g, url+"/v2/"); in.Code != "unavailable" || got != nil || !strings.Contains(in.Message, "its secret is missing") {
		t.Errorf("a missing secret: got %+v", in)
	}
}

// TestInjectedElsewhere redirects to an origin that must not get the key, and to a URL that contains the key.
// Proves: Secrets stay secret
func TestInjectedElsewhere(t *testing.T) {
	t.Parallel()
	var got http.Header
	there := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	here := serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		if r.URL.Query().Has("leak") {
			to += "?token=" + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	rule := inject(here, here, there)
	rule.Redirects = 3
	g := grant(t, spec{Rule: rule, secrets: &vault{values: map[string]string{"key": key}}})
	if in := get(t, g, here+"/?to="+there+"/", []string{"X-Other", "o"}); in.Status != 200 || got.Get("Authorization") != "" || got.Get("X-Plain") != "" || got.Get("X-Other") != "" {
		t.Errorf("another origin got %v, the guest %+v", got, in)
	}
	got = nil
	if in := get(t, g, here+"/?leak&to="+there+"/"); in.Code != "redirect" || got != nil || strings.Contains(in.whole, key[:12]) {
		t.Errorf("a redirect with the key: another origin got %v, the guest %+v", got, in)
	}
	rule.Redirects = 0
	if in := get(t, grant(t, spec{Rule: rule, secrets: &vault{values: map[string]string{"key": key}}}), here+"/?leak&to="+there+"/"); in.Status != 307 || strings.Contains(in.whole, key[:12]) {
		t.Errorf("a redirect that is not followed: the guest got %+v", in)
	}
}

// TestReflected makes a server echo what it gets. The guest sees the echo without the key, and can't find out the key's length.
// Proves: Secrets stay secret
func TestReflected(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, and takes twenty times as long with the race detector")
	}
	sums := []string{"Etag", "Digest", "Content-Digest", "Repr-Digest", "Content-Md5"}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		if r.URL.Path == "/header" {
			w.Header().Set("X-Echo", auth)
			w.Header().Set("Etag", `"1"`)
			return
		}
		body := strings.Repeat("x", len(r.Header.Get("X-Pad"))) + auth
		for _, name := range sums {
			w.Header().Set(name, fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body))))
		}
		if status, err := strconv.Atoi(r.URL.Path[1:]); err == nil {
			w.WriteHeader(status)
			return
		}
		if r.URL.Path == "/gzip" {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = io.WriteString(z, body)
			_ = z.Close()
			body = b.String()
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = io.WriteString(w, body)
	})
	with := func(secret string) *httpcap.Permission {
		rule := inject(url, url)
		rule.ResponseBytes = 200
		return grant(t, spec{Rule: rule, secrets: &vault{values: map[string]string{"key": secret}}})
	}
	c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}}))
	defer c.ABI.End()
	if in := c.send(t, outgoing{Method: "HEAD", URL: url + "/"}); in.header("Etag") == nil {
		t.Errorf("without a secret: got %+v, want the checksum", in)
	}
	short, long := with(key), with(key+strings.Repeat("_and_more_of_it_3141592653", 40))
	for _, path := range []string{"/", "/gzip", "/header", "/204", "/304"} {
		for _, method := range []string{"GET", "HEAD"} {
			codes := map[string]bool{}
			for pad := 178; pad < 190; pad++ { // around the limit
				ask := func(g *httpcap.Permission) *incoming {
					c := begin(t, g)
					defer c.ABI.End()
					return c.send(t, outgoing{Method: method, URL: url + path, Headers: [][]string{{"X-Pad", strings.Repeat("p", pad)}}})
				}
				a, b := ask(short), ask(long)
				codes[a.Code] = true
				if strings.Contains(a.whole+b.whole, key[:12]) {
					t.Fatalf("%s %s: the guest got %s and %s", method, path, a.whole, b.whole)
				}
				if a.Code != b.Code || a.Body != b.Body || fmt.Sprint(a.header("Content-Length"), a.header("Etag"), a.header("X-Echo")) != fmt.Sprint(b.header("Content-Length"), b.header("Etag"), b.header("X-Echo")) {
					t.Fatalf("%s %s with %d bytes: the answer shows that a key is longer: %+v, and %+v", method, path, pad, a, b)
				}
				for _, name := range sums {
					if a.Code == "" && (method == "HEAD" || path != "/header") && a.header(name) != nil {
						t.Errorf("%s %s: the guest got the checksum of a body that has changed or isn't sent: %+v", method, path, a)
					}
				}
			}
			if method == "GET" && (path == "/" || path == "/gzip") && len(codes) != 2 {
				t.Errorf("%s: all sizes have the outcome %v, so none or all exceed the limit", path, codes)
			}
		}
	}
}

// TestReflectedNames makes servers send the key as the name of a header. The client changes its case, and so do some servers before.
// Proves: Secrets stay secret
func TestReflectedNames(t *testing.T) {
	t.Parallel()
	codes := map[string]string{"as it is": key, "in base64": base64.RawURLEncoding.EncodeToString([]byte(key)), "in digits": hex.EncodeToString([]byte(key)),
		"in base32": base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(key)), "escaped": strings.ReplaceAll(key, "_", "%5F")}
	cases := map[string]func(string) string{"raw": func(s string) string { return s }, "canonical": http.CanonicalHeaderKey, "lower": strings.ToLower, "upper": strings.ToUpper}
	const body = "Content-Length: 2\r\n\r\nok"
	for how, code := range codes {
		for as, change := range cases {
			name := change(code)
			for where, answer := range map[string]string{
				"a name":            "HTTP/1.1 200 OK\r\n" + name + ": v\r\n" + body,
				"part of a name":    "HTTP/1.1 200 OK\r\nx-" + name + "-y: v\r\n" + body,
				"a name and a fold": "HTTP/1.1 200 OK\r\nx-" + name + ": v\r\n w\r\n" + body,
				"a spaced name":     "HTTP/1.1 200 OK\r\nx-" + name + " : v\r\n" + body,
				"two names":         "HTTP/1.1 200 OK\r\n" + name + ": v\r\n" + strings.ToLower(name) + ": v\r\n" + body,
				"the reason":        "HTTP/1.1 200 " + name + "\r\n" + body,
				"a hint":            "HTTP/1.1 103 " + name + "\r\n" + name + ": v\r\n\r\nHTTP/1.1 200 OK\r\n" + body,
				"an announcement":   "HTTP/1.1 200 OK\r\nTrailer: " + name + "\r\n" + body,
				"a trailer":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: " + name + "\r\n\r\n2\r\nok\r\n0\r\n" + name + ": v\r\n\r\n",
				"an extension":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + name + "=v\r\nok\r\n0\r\n\r\n",
			} {
				url := raw(t, say(answer, ""))
				in := get(t, grant(t, spec{Rule: inject(url, url), secrets: &vault{values: map[string]string{"key": key}}}), url)
				if in.Status != 200 || in.Body != "ok" || strings.Contains(strings.ToLower(in.whole), strings.ToLower(code[1:])) {
					t.Errorf("%s, %s, as %s: the guest got %q", how, as, where, in.whole)
				}
			}
		}
	}
}

// TestNew has grants that must be refused, with the errors.
func TestNew(t *testing.T) {
	t.Parallel()
	empty := testkit.Put(t, t.TempDir(), "ca.pem", "nothing")
	on := func(values map[string]string) httpcap.Rule {
		return httpcap.Rule{Granted: []string{"https://a.example"}, Headers: map[string]map[string]string{"https://a.example": values}}
	}
	for want, rule := range map[string]httpcap.Rule{
		"http: \"ftp://a\" is not the address":            {Granted: []string{"ftp://a"}},
		"redirects: 11 is out of range":                   {Redirects: 11},
		"redirects: -1 is out of range":                   {Redirects: -1},
		"http_timeout is below 0":                         {Timeout: -1},
		"above 1GiB":                                      {ResponseBytes: 1<<30 + 1},
		"private: ::/0":                                   {Private: []netip.Prefix{netip.MustParsePrefix("::/0")}},
		"private: ::ffff:10.0.0.0/104":                    {Private: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}},
		"private: invalid":                                {Private: make([]netip.Prefix, 1)},
		"for a place that http does not grant":            {Granted: []string{"https://a.example"}, Headers: map[string]map[string]string{"https://b.example": {"X": "y"}}},
		"headers: \"b\" is not the address":               {Headers: map[string]map[string]string{"b": nil}},
		"The header Host can't be set":                    on(map[string]string{"Host": "b"}),
		"control character":                               on(map[string]string{"X": "a\r\nb"}),
		"a value: ${ must be followed by secret:":         on(map[string]string{"X": "${key}"}),
		"a value: ${ must be followed by secret:, a name": on(map[string]string{"Y": "${secret:key"}),
		"a value: ${ must be followed by secret:, a":      on(map[string]string{"Z": "${secret:}"}),
		"${secret:...} needs a secret":                    on(map[string]string{"X": "${secret:key}"}),
		"ca: ":                                            {CA: empty + ".not"},
		"has no certificate in PEM":                       {CA: empty},
		"it is not a regular file":                        {CA: t.TempDir()},
	} {
		_, err := httpcap.New(nil, []httpcap.Rule{rule}, httpcap.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error with %q", rule, err, want)
		}
		if checked := httpcap.Check(rule); want != "${secret:...} needs a secret" && (checked == nil || checked.Error() != err.Error()) {
			t.Errorf("%+v: Check has %v, New %v", rule, checked, err)
		}
	}
	if _, err := httpcap.New([]string{"b"}, nil, httpcap.Options{}); err == nil || !strings.HasPrefix(err.Error(), "needs: http: ") {
		t.Errorf("a need that is not valid: got %v", err)
	}
}

// TestHeaderTwice sets a header twice for the same requests, with keys that are written in two ways. That is refused, always with the same message,
// which has both keys and no value.
func TestHeaderTwice(t *testing.T) {
	t.Parallel()
	type headers = map[string]map[string]string
	for _, test := range []struct {
		name    string
		headers headers
		want    string // empty: it is accepted
	}{
		{"two spellings of an origin", headers{"http://localhost:81": {"X-Key": "value-1"}, "http://LOCALHOST:81": {"X-Key": "value-2"}},
			`headers: "X-Key" under "http://LOCALHOST:81" and "X-Key" under "http://localhost:81" set the same header of the same requests: keep one of them`},
		{"with a slash and without", headers{"https://a.example": {"X-Key": "value-1"}, "https://a.example/": {"x-key": "value-2"}},
			`headers: "X-Key" under "https://a.example" and "x-key" under "https://a.example/" set the same`},
		{"with its port and without", headers{"https://a.example": {"X-Key": "value-1"}, "https://a.example:443": {"X-Key": "value-2"}}, `"X-Key" under "https://a.example:443"`},
		{"two spellings of a name", headers{"https://a.example": {"X-Key": "value-1", "x-key": "value-2"}}, `headers: "X-Key" under "https://a.example" and "x-key" under "https://a.example" set`},
		{"as CGI reads a name", headers{"https://a.example": {"X-Key": "value-1", "X_Key": "value-2"}}, `"X-Key" under "https://a.example" and "X_Key" under`},
		{"an origin and a path", headers{"https://a.example": {"X-Key": "value-1"}, "https://a.example/v1/": {"X-Key": "value-2"}}, ""},
		{"two headers", headers{"https://a.example": {"X-Key": "value-1"}, "https://a.example/": {"X-Other": "value-2"}}, ""},
	} {
		rule := httpcap.Rule{Granted: slices.Sorted(maps.Keys(test.headers)), Headers: test.headers}
		for range 10 { // maps have no order
			err := httpcap.Check(rule)
			if got := fmt.Sprint(err); (err == nil) != (test.want == "") || err != nil && !strings.Contains(got, test.want) || strings.Contains(got, "value-") {
				t.Fatalf("%s: got %v, want %q", test.name, err, test.want)
			}
		}
	}
}

// TestEqual compares grants.
func TestEqual(t *testing.T) {
	t.Parallel()
	v, n := &vault{}, &network{}
	base := func() spec {
		return spec{Rule: inject("https://a.example", "https://a.example"), secrets: v, network: n}
	}
	g := grant(t, base())
	if !g.Equal(grant(t, base())) || g.Equal(nil) || g.Equal("x") || g.Equal((*httpcap.Permission)(nil)) {
		t.Error("a grant is not equal to the same grant, or is equal to something else")
	}
	for name, change := range map[string]func(*spec){
		"need":    func(s *spec) { s.needed = []string{"https://a.example", "https://b.example"} },
		"grant":   func(s *spec) { s.Granted = []string{"https://a.example/v2/", "https://a.example"} },
		"header":  func(s *spec) { s.Headers["https://a.example"]["x-plain"] = "q" },
		"private": func(s *spec) { s.Private = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} },
		"bound":   func(s *spec) { s.Requests = 1 },
		"secrets": func(s *spec) { s.secrets = &vault{} },
		"ca":      func(s *spec) { s.CA = newAuthority(t).pem },
	} {
		s := base()
		change(&s)
		if g.Equal(grant(t, s)) {
			t.Errorf("with another %s the grant is said to be equal", name)
		}
	}
}

// FuzzSend sends heads as a guest may write them. Only the granted name is looked up, and only its address is dialled.
// Proves: Requests go only where they were granted
func FuzzSend(f *testing.F) {
	for _, out := range []outgoing{
		{Method: "GET", URL: "https://a.example/"},
		{Method: "POST", URL: "http://a.example/?q", Headers: [][]string{{"X", "y"}}, Timeout: 100, Redirect: "manual"},
		{Method: "GET", URL: "https://a.example@evil.test/", Headers: [][]string{{"Host", "evil.test"}}},
	} {
		head, _ := json.Marshal(out)
		f.Add(string(head), "body")
	}
	f.Fuzz(func(t *testing.T, head, body string) {
		n := &network{}
		c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{"https://a.example", "http://a.example"}, Private: []netip.Prefix{}}, network: n}))
		defer c.ABI.End()
		in := c.sendHead(t, []byte(head), body)
		if in.Code == "" || in.Message == "" {
			t.Errorf("%q was answered %+v", head, in)
		}
		for _, name := range n.asked {
			if name != "a.example." {
				t.Errorf("%q: looked up %s", head, name)
			}
		}
		for _, address := range n.dialed {
			if address != public+":443" && address != public+":80" {
				t.Errorf("%q: dialled %s", head, address)
			}
		}
	})
}
