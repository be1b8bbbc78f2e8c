package http_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
)

// TestRefusedRequestsAreUses makes the host refuse requests for each of its reasons. Each counts as a use, with the code that the guest gets. If the
// grant refuses a redirect, the use has the code for "not granted", whatever code the guest gets.
func TestRefusedRequestsAreUses(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.example/", http.StatusFound)
	})
	near := &network{names: func(string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil }}
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{url + "/v1/", "https://near.example"}, RequestBytes: 10, Requests: 4, Redirects: 1}, network: near})
	long := strings.Repeat("x", 11)
	for _, test := range []struct {
		name  string
		grant any
		out   outgoing
		times int
		want  []string // the target, what was sent, and the outcome of each use
	}{
		{"another origin", g, outgoing{URL: "https://evil.example/steal?secret"}, 2, []string{"GET https://evil.example/steal 0 not_granted", "GET https://evil.example/steal 0 not_granted"}},
		{"another path", g, outgoing{Method: "PUT", URL: url + "/v2/", body: "b"}, 1, []string{"PUT " + url + "/v2/ 0 not_granted"}},
		{"a private address", g, outgoing{Method: "PUT", URL: "https://near.example/a", body: "b"}, 1, []string{"PUT https://near.example/a 1 not_granted"}},
		{"a large body", g, outgoing{Method: "PUT", URL: url + "/v1/a", body: long}, 1, []string{"PUT " + url + " 0 too_large"}},
		{"a redirect elsewhere", g, outgoing{URL: url + "/v1/a"}, 1, []string{"GET " + url + "/v1/a 0 ", "GET https://evil.example/ 0 not_granted"}},
		{"too many requests", g, outgoing{URL: "https://near.example/a"}, 5, []string{"GET https://near.example/a 0 not_granted", "GET https://near.example/a 0 not_granted",
			"GET https://near.example/a 0 not_granted", "GET https://near.example/a 0 not_granted", "GET https://near.example/a 0 limit"}},
		{"not a URL", g, outgoing{URL: "evil"}, 1, []string{" 0 invalid"}},
		{"a large head", g, outgoing{URL: url + "/v1/" + strings.Repeat("x", 128<<10)}, 1, []string{" 0 too_large"}},
		{"not declared", nil, outgoing{URL: url + "/v1/"}, 1, []string{" 0 not_granted"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, test.grant)
			defer c.ABI.End()
			for range test.times {
				in, redirected := c.send(t, test.out), test.name == "a redirect elsewhere"
				if in.Code == "" || redirected != (in.Code == "redirect") || !redirected && !strings.HasSuffix(test.want[len(test.want)-1], in.Code) && in.Code != "not_granted" {
					t.Errorf("got %+v", in)
				}
			}
			var got []string
			for _, u := range c.Uses {
				if u.Capability != "http" || u.Received != 0 {
					t.Errorf("got the use %+v", u)
				}
				got = append(got, fmt.Sprintf("%s %d %s", u.Target, u.Sent, u.Outcome))
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got the uses\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}

// TestRefusedRequestsTellNoSecret makes a guest request a URL whose path is a secret that is put into requests to that host.
func TestRefusedRequestsTellNoSecret(t *testing.T) {
	t.Parallel()
	v := &vault{values: map[string]string{"key": "hunter2hunter2"}}
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"https://a.example/v1/"}, Headers: map[string]map[string]string{"https://a.example": {"X-Key": "${secret:key}"}}}, secrets: v})
	c := begin(t, g)
	defer c.ABI.End()
	in := c.send(t, outgoing{URL: "https://a.example/hunter2hunter2"})
	if len(c.Uses) != 1 || c.Uses[0].Outcome != "not_granted" || strings.Contains(c.Uses[0].Target, "hunter2") || strings.Contains(in.whole, "hunter2") {
		t.Errorf("got %s and the uses %+v", in.whole, c.Uses)
	}
}

// BenchmarkRefused measures a refused request. It must cost no more than what is charged.
func BenchmarkRefused(b *testing.B) {
	g := grant(b, spec{Rule: httpcap.Rule{Granted: []string{"https://a.example/v1/"}}})
	for _, url := range []string{"https://evil.example/", "https://evil.example/" + strings.Repeat("x", 120<<10)} {
		b.Run(fmt.Sprint(len(url)), func(b *testing.B) {
			head, err := json.Marshal(outgoing{Method: "GET", URL: url})
			if err != nil {
				b.Fatal(err)
			}
			c := begin(b, g)
			defer c.ABI.End()
			c.Memory = head
			send := httpcap.Set().Functions[0]
			for b.Loop() {
				c.Uses = c.Uses[:0]
				c.Do(&send, 0, 0, uint64(len(head)), 0, 0)
			}
			b.ReportMetric(float64(c.Charged())/float64(b.N), "charged-ns/op")
		})
	}
}
