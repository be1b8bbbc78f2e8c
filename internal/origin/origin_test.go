package origin_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/origin"
)

// Proves: Web pages are kept out
func TestParseHost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text     string
		name     string // empty if it is not a host
		port     uint16
		loopback bool
	}{
		{"localhost", "localhost", 0, true},
		{"localhost:8000", "localhost", 8000, true},
		{"localhost:", "localhost", 0, true},
		{"LocalHost.", "localhost", 0, true},
		{"a.b.localhost:1", "a.b.localhost", 1, true},
		{"127.0.0.1", "127.0.0.1", 0, true},
		{"127.255.0.9:65535", "127.255.0.9", 65535, true},
		{"127.0.0.1.", "127.0.0.1", 0, true},
		{"[::1]", "::1", 0, true},
		{"[::1]:8000", "::1", 8000, true},
		{"[0:0:0:0:0:0:0:1]", "::1", 0, true},
		{"[::ffff:127.0.0.1]:80", "127.0.0.1", 80, true},
		{"[::FFFF:7F00:1]", "127.0.0.1", 0, true},
		{"evil.example", "evil.example", 0, false},
		{"localhost.evil.example", "localhost.evil.example", 0, false},
		{"127.0.0.1.evil.example", "127.0.0.1.evil.example", 0, false},
		{"notlocalhost", "notlocalhost", 0, false},
		{"0.0.0.0:8000", "0.0.0.0", 8000, false},
		{"128.0.0.1", "128.0.0.1", 0, false},
		{"[::]", "::", 0, false},
		{"[::127.0.0.1]", "::7f00:1", 0, false},
		{"1password.example", "1password.example", 0, false},
		{"4f5e6a7b8c9d:80", "4f5e6a7b8c9d", 80, false},
		{"my_service", "my_service", 0, false},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", 0, false},
		{"", "", 0, false},
		{".", "", 0, false},
		{"..", "", 0, false},
		{":8000", "", 0, false},
		{"localhost..", "", 0, false},
		{".localhost", "", 0, false},
		{"a..localhost", "", 0, false},
		{"user@localhost", "", 0, false},
		{"user:secret@localhost", "", 0, false},
		{"localhost@evil.example", "", 0, false},
		{"localhost:80@evil.example", "", 0, false},
		{"localhost/", "", 0, false},
		{"localhost#evil.example", "", 0, false},
		{"localhost evil.example", "", 0, false},
		{"localhost,evil.example", "", 0, false},
		{"localhost\x00", "", 0, false},
		{"local%68ost", "", 0, false},
		{"ｌocalhost", "", 0, false},
		{"localhost:http", "", 0, false},
		{"localhost:+80", "", 0, false},
		{"localhost:-80", "", 0, false},
		{"localhost:65536", "", 0, false},
		{"localhost:80:80", "", 0, false},
		{"::1", "", 0, false},
		{"[::1", "", 0, false},
		{"::1]", "", 0, false},
		{"[::1]x", "", 0, false},
		{"[::1]x:80", "", 0, false},
		{"[[::1]]", "", 0, false},
		{"[]", "", 0, false},
		{"[localhost]", "", 0, false},
		{"[127.0.0.1]", "", 0, false},
		{"[::1%lo]", "", 0, false},
		{"[::1%25lo]:80", "", 0, false},
		{"[fe80::1%25evil.example]", "", 0, false},
		{"127.1", "", 0, false},
		{"127.0.0.01", "", 0, false},
		{"2130706433", "", 0, false},
		{"0x7f000001", "", 0, false},
		{"0X7F.1", "", 0, false},
		{"127.0.0.0x1", "", 0, false},
		{"127.0.0.1.5", "", 0, false},
		{"127.0.0.256", "", 0, false},
		{strings.Repeat("a", 254), "", 0, false},
		{strings.Repeat("a.", 1<<20), "", 0, false},
	} {
		h, ok := origin.ParseHost(test.text)
		if want := (origin.Host{Name: test.name, Port: test.port}); h != want || ok != (test.name != "") || h.IsLoopback() != test.loopback {
			t.Errorf("%.40q: got %+v (%t, loopback %t), want %+v (loopback %t)", test.text, h, ok, h.IsLoopback(), want, test.loopback)
		}
	}
}

// Proves: Web pages are kept out
func TestParseOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.com":        "https://example.com",
		"https://example.com:443":    "https://example.com",
		"http://example.com:443":     "http://example.com:443",
		"HTTP://Example.COM.:80":     "http://example.com",
		"http://localhost:3000":      "http://localhost:3000",
		"http://[::1]:3000":          "http://[::1]:3000",
		"https://[0::1]":             "https://[::1]",
		"chrome-extension://abcdefg": "chrome-extension://abcdefg",
		"tauri://localhost":          "tauri://localhost",
		"null":                       "",
		"":                           "",
		"*":                          "",
		"example.com":                "",
		"//example.com":              "",
		"://example.com":             "",
		"1http://example.com":        "",
		"https:/example.com":         "",
		"https://":                   "",
		"https://example.com/":       "",
		"https://example.com/a":      "",
		"https://example.com?a":      "",
		"https://example.com#a":      "",
		"https://me@example.com":     "",
		"https://example.com https://evil.example": "",
		"https://example.com,https://evil.example": "",
		"https://https://example.com":              "",
		"file://":                                  "",
		" https://example.com":                     "",
	} {
		o, ok := origin.ParseOrigin(text)
		if ok != (want != "") || ok && o.String() != want {
			t.Errorf("%q: got %v (%t), want %q", text, o, ok, want)
		}
	}
}

func TestIsOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		page, host string
		want       bool
	}{
		{"http://localhost:8000", "localhost:8000", true},
		{"http://LOCALHOST:8000", "localhost.:8000", true},
		{"https://example.com", "example.com", true}, // behind a proxy that terminates TLS
		{"https://example.com", "example.com:443", true},
		{"http://example.com", "example.com:80", true},
		{"https://example.com:8443", "example.com:8443", true},
		{"http://[::1]:8000", "[0::1]:8000", true},
		{"https://example.com", "example.com:80", false},
		{"https://example.com:8443", "example.com", false},
		{"http://localhost:3000", "localhost:8000", false},
		{"http://localhost:8000", "127.0.0.1:8000", false},
		{"https://example.com.evil.org", "example.com", false},
		{"https://notexample.com", "example.com", false},
		{"https://example.co", "example.com", false},
		{"tauri://localhost:8000", "localhost:8000", false},
		{"tauri://localhost", "localhost", false},
	} {
		o, isOrigin := origin.ParseOrigin(test.page)
		h, isHost := origin.ParseHost(test.host)
		if got := o.IsOf(h); got != test.want || !isOrigin || !isHost {
			t.Errorf("%s of %s: got %t", test.page, test.host, got)
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	p, err := origin.NewPatterns([]string{"Tools.Example.com.", "*.example.org", "10.0.0.5", "::2", "[::3]"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"tools.example.com":          true,
		"TOOLS.example.com.:8000":    true,
		"a.example.org":              true,
		"a.b.example.org":            true,
		"10.0.0.5:80":                true,
		"[::ffff:10.0.0.5]":          true,
		"[0::2]:80":                  true,
		"[::3]":                      true,
		"example.com":                false,
		"a.tools.example.com":        false,
		"example.org":                false,
		"notexample.org":             false,
		"a.notexample.org":           false,
		"a.example.org.evil.example": false,
		"tools.example.com.evil.org": false,
		"110.0.0.5":                  false,
		"localhost":                  false,
		"[::1]":                      false,
		"org":                        false,
	} {
		h, ok := origin.ParseHost(host)
		if got := p.Match(h); got != want || !ok || p.Every() {
			t.Errorf("%s: got %t (%t)", host, got, ok)
		}
	}
	if every, err := origin.NewPatterns([]string{"*"}); err != nil || !every.Every() || !every.Match(origin.Host{}) {
		t.Errorf("* is not every host (%v)", err)
	}
	if _, err := origin.NewPatterns([]string{"a b"}); err == nil {
		t.Error("a pattern with a blank is no error")
	}
	if (origin.Patterns{}).Match(origin.Host{}) || (origin.Patterns{}).Every() {
		t.Error("a value without patterns matches something")
	}
}

// TestCheck checks the errors about wrong patterns and origins.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		check      func(string) (string, error)
		text, want string
	}{
		{origin.CheckPattern, "*.Example.com.", "*.example.com"},
		{origin.CheckPattern, "[0::1]", "::1"},
		{origin.CheckPattern, "::ffff:10.0.0.5", "10.0.0.5"},
		{origin.CheckPattern, "", "is empty"},
		{origin.CheckPattern, "https://example.com", "has a scheme"},
		{origin.CheckPattern, "example.com:8000", "has a port"},
		{origin.CheckPattern, "*.example.com:8000", "has a port"},
		{origin.CheckPattern, "[::1]:8000", "has a port"},
		{origin.CheckPattern, "ex*mple.com", "has a * that"},
		{origin.CheckPattern, "**.example.com", "has a * that"},
		{origin.CheckPattern, "*.*.example.com", "has a * that"},
		{origin.CheckPattern, "*example.com", "has a * that"},
		{origin.CheckPattern, "*.10.0.0.5", "has a * that"},
		{origin.CheckPattern, "*.[::1]", "has a * that"},
		{origin.CheckPattern, "bücher.example", "is not in ASCII"},
		{origin.CheckPattern, ".example.com", "is not a host"},
		{origin.CheckPattern, "*.", "is not a host"},
		{origin.CheckPattern, "10.0.0.0/8", "is not a host"},
		{origin.CheckPattern, "fe80::1%eth0", "is not a host"},
		{origin.CheckPattern, strings.Repeat("x", 1<<20), "is not a host"},
		{origin.CheckOrigin, "HTTPS://Example.com:443", "https://example.com"},
		{origin.CheckOrigin, "*", "*"},
		{origin.CheckOrigin, "", "is empty"},
		{origin.CheckOrigin, "null", "every page without one"},
		{origin.CheckOrigin, "example.com", "is not an origin"},
		{origin.CheckOrigin, "https://example.com/", "is not an origin"},
		{origin.CheckOrigin, "https://*.example.com", "has a *"},
		{origin.CheckOrigin, "http://localhost:*", "has a *"},
	} {
		got, err := test.check(test.text)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) || len(got) > 400 {
			t.Errorf("%.60q: got %.500s, want %s", test.text, got, test.want)
		}
	}
}

// FuzzHost checks that a parsed host is parsed as the same again, and that nothing but a name or an address is accepted.
// Proves: Web pages are kept out
func FuzzHost(f *testing.F) {
	for _, s := range []string{"localhost:8000", "[::1]:80", "[::ffff:1.2.3.4]", "a.b.", "127.1", "u@h", "[::1%25lo]", "0x7f.1", "A_b-c.example:65535"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, ok := origin.ParseHost(s)
		if !ok {
			if h != (origin.Host{}) {
				t.Errorf("%q is not a host, but has %+v", s, h)
			}
			return
		}
		o := origin.Origin{Scheme: "x", Host: h}
		if again, ok := origin.ParseOrigin(o.String()); !ok || again != o {
			t.Errorf("%q: got %+v, and then %+v", s, o, again)
		}
		if pattern, err := origin.CheckPattern(h.Name); err != nil || pattern != h.Name {
			t.Errorf("%q as a pattern: got %q (%v)", s, pattern, err)
		}
	})
}

// FuzzOrigin checks that an origin that is written and read again stays the same, and that a page is foreign to every other host.
// Proves: Web pages are kept out
func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"https://example.com:443", "http://[::1]:80", "null", "tauri://localhost", "http://a/b", "HTTP://A.:1"} {
		f.Add(s, "example.com")
	}
	f.Fuzz(func(t *testing.T, s, host string) {
		o, ok := origin.ParseOrigin(s)
		if !ok {
			return
		}
		if again, ok := origin.ParseOrigin(o.String()); !ok || again != o {
			t.Errorf("%q: got %+v, and then %+v", s, o, again)
		}
		if h, ok := origin.ParseHost(host); ok && o.IsOf(h) && h.Name != o.Name {
			t.Errorf("%q is an origin of %q", s, host)
		}
	})
}

func BenchmarkParseHost(b *testing.B) {
	for _, s := range []string{"127.0.0.1:8000", "localhost:8000", "tools.example.com"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h, _ := origin.ParseHost(s)
				_ = h.IsLoopback()
			}
		})
	}
}
