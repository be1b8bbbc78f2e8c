package http_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
)

// TestHeadsAreCharged makes guests send heads that take long to read. Each byte is charged before it is read, and only few values are read.
// Proves: A tool stops
func TestHeadsAreCharged(t *testing.T) {
	t.Parallel()
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://a.example"}}})
	const size = 128 << 10
	fill := func(before, unit, after string) string {
		return before + strings.Repeat(unit, (size-len(before)-len(after))/len(unit)) + after
	}
	for _, test := range []struct {
		name, head string
		least      int64 // nanoseconds
		code       string
	}{
		{"arrays", fill(`{"method":[[]`, ",[]", "]}"), 15 * size, "too_large"},
		{"deep arrays", fill(``, "[", ""), 15 * size, "too_large"},
		{"headers", fill(`{"method":"GET","url":"http://a.example","headers":[["a","b"]`, `,["a","b"]`, "]}"), 15 * size, "too_large"},
		{"members", fill(`{"method":"GET"`, `,"a":0`, "}"), 15 * size, "too_large"},
		{"escapes", fill(`{"method":"GET","url":"`, `\u0041`, `"}`), 15 * size, "invalid"},
		{"a long name of a header", fill(`{"method":"GET","url":"http://a.example","headers":[["`, "a", `","b"]]}`), 15 * size, "too_large"},
		{"a long value of a header", fill(`{"method":"GET","url":"http://a.example","headers":[["a","`, "[,", `"]]}`), 15 * size, "too_large"},
		{"a string without end", fill(`{"method":"`, `\"`, ``), 15 * size, "invalid"},
		{"space", fill(`{`, " ", `}`), 15 * size, "invalid"},
		{"101 headers", `{"method":"GET","url":"http://a.example","headers":[["a","b"]` + strings.Repeat(`,["a","b"]`, 100) + "]}", 20_000, "too_large"},
	} {
		c := begin(t, g)
		if in := c.sendHead(t, []byte(test.head), ""); in.Code != test.code {
			t.Errorf("%s: got %s (%.200s), want %s", test.name, in.Code, in.Message, test.code)
		}
		if got := c.Charged(); got < test.least {
			t.Errorf("%s: %d ns were charged for %d bytes, want %d at least", test.name, got, len(test.head), test.least)
		}
		if c.ABI.End(); c.Held != int64(len(c.Memory)) { // the answer is held until the call's end
			t.Errorf("%s: %d bytes are held", test.name, c.Held)
		}
	}
	c := begin(t, g)
	c.send(t, outgoing{URL: "http://a.example/", Headers: [][]string{{"Accept", "text/html"}, {"User-Agent", "a test"}}})
	if got := c.Charged(); got > 25_000 {
		t.Errorf("%d ns were charged for a small request", got)
	}
}

// TestPackedBodiesAreCharged makes a server answer with much compressed data that decompresses to nothing.
// Proves: A service can't use up the host
func TestPackedBodiesAreCharged(t *testing.T) {
	t.Parallel()
	packed := strings.Repeat(zipped(0), 10_000)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, packed)
	})
	c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}}))
	defer c.ABI.End()
	if in := c.send(t, outgoing{URL: url + "/"}); in.Code != "" || in.Body != "" {
		t.Errorf("got %+v", in)
	}
	if got, least := c.Charged(), int64(20*len(packed)); got < least {
		t.Errorf("%d ns were charged for %d bytes, want %d at least", got, len(packed), least)
	}
}
