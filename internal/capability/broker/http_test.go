package broker_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestHTTPGrants checks which needs a grant meets, even partly, and what is reported about the others.
func TestHTTPGrants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ need, grant, missing string }{
		{"https://a.example", `http = ["https://a.example"]`, ""},
		{"https://a.example", `http = ["https://a.example/v2/"]`, ""},
		{"https://a.example/v2/", `http = ["https://a.example"]`, ""},
		{"https://*", `http = ["https://a.example"]`, ""},
		{"https://*.b.example/v2/", `http = ["https://a.b.example"]`, ""},
		{"https://a.example", `http = ["http://a.example"]`, "http https://a.example"},
		{"https://a.example", `http = ["https://a.example:8443"]`, "http https://a.example"},
		{"https://a.example/v1/", `http = ["https://a.example/v2/"]`, "http https://a.example/v1/"},
		{"https://a.example", "http = ['https://a.example']\nheaders = {'https://a.example' = {X = '${secret:none}'}}", "http (the secret of ${secret:...} in the headers of its grant (line 1)"},
	} {
		g := grants(t, "[[grant]]\nmatch = 'x'\n"+test.grant)
		granted := g.For("/x", wasmtools.Needs{"http": {Words: []string{test.need}}})
		if got := lacks(granted); test.missing == "" && got != "" || !strings.HasPrefix(got, test.missing) {
			t.Errorf("%s granted by %s: missing %q, want %q", test.need, test.grant, got, test.missing)
		}
		if test.missing == "" && (len(granted.Values) != 1 || granted.Values[0].Module != http.Module) {
			t.Errorf("%s granted by %s: got the values %v", test.need, test.grant, granted.Values)
		}
	}
}

// TestHTTPRefused checks that a configuration with an impossible grant is refused.
func TestHTTPRefused(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("[[grant]]\nmatch = 'x'\nhttp = ['https://a.example']\nca = 'nowhere.pem'"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(c, broker.Options{})
	if _, err := b.Make(c, nil); err == nil || !strings.Contains(err.Error(), `grant[0] (line 1): `) {
		t.Errorf("a missing file: got %v", err)
	}
}
