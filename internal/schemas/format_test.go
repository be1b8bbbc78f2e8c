package schemas_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

var formats = []string{
	"date-time", "date", "time", "duration", "period", "hostname", "email", "ip-address", "ipv4", "ipv6", "uri", "iri", "uri-reference", "uriref",
	"iri-reference", "uri-template", "regex", "json-pointer", "relative-json-pointer", "uuid",
}

func withFormat(name string) *schemas.Schema {
	return schemas.MustCompile(`{"type":"object","properties":{"a":{"format":"` + name + `"}}}`)
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format, text string
		ok           bool
	}{
		{"date-time", "2024-02-29T23:59:60Z", true}, {"date-time", "2024-02-29 23:59:59Z", false},
		{"date", "2024-02-29", true}, {"date", "2023-02-29", false},
		{"time", "08:30:06.283185Z", true}, {"time", "08:30:06", false},
		{"duration", "P4DT12H30M5S", true}, {"duration", "4DT12H", false},
		{"hostname", "www.example.com", true}, {"hostname", "-a.example", false},
		{"email", "joe.bloggs@example.com", true}, {"email", "2962", false},
		{"ipv4", "192.168.0.1", true}, {"ipv4", "256.0.0.1", false}, {"ipv4", "01.2.3.4", false}, {"ipv4", "+1.2.3.4", false},
		{"ipv6", "::abef", true}, {"ipv6", "12345::", false},
		{"uri", "https://example.com/a?b#c", true}, {"uri", "//example.com/a", false},
		{"uri-reference", "/abc", true}, {"uri-reference", `\\WINDOWS\fileshare`, false},
		{"uri-template", "https://example.com/{/path*}{?q,page:3}{#f}", true}, {"uri-template", "https://example.com/{term", false}, {"uri-template", "{}", false},
		{"regex", `^a\u0041(b|c)$`, true}, {"regex", "^(abc]", false},
		{"json-pointer", "/foo/bar~0~1", true}, {"json-pointer", "/foo/bar~", false},
		{"relative-json-pointer", "1/a", true}, {"relative-json-pointer", "-1/a", false},
		{"uuid", "2EB8AA08-aa98-11ea-b4aa-73b441d16380", true}, {"uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d1638", false},
		{"uuid", strings.Repeat("a", 2000), false},
		{"colour", "anything", true},
	} {
		body, err := json.Marshal(map[string]string{"a": test.text})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := withFormat(test.format).Validate(body); (err == nil) != test.ok {
			t.Errorf("%s %q: got %v, want ok to be %v", test.format, test.text, err, test.ok)
		}
	}
}

// FuzzFormat: a check must not panic for any text.
func FuzzFormat(f *testing.F) {
	for _, text := range []string{"", ".", "2024-01-01T00:00:00Z", "00:00:00+00:00", "P1Y", "P1Y/P1D", "a@[IPv6:::1]", "::1", "http://[::1]/", "{+a}", "0#", "/~0"} {
		f.Add(text)
	}
	schemas := map[string]*schemas.Schema{}
	for _, name := range formats {
		schemas[name] = withFormat(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		body, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			return
		}
		for name, s := range schemas {
			if _, err := s.Validate(body); err != nil && !strings.Contains(violationsOf(t, err), `"loc":["body","a"]`) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
