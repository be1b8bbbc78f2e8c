package command_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A way calls an operation, and returns the result or an error.
type way struct {
	name string
	ask  func(operation, arguments string, command ...string) string
}

// clientAs returns a client of a server with a token.
func clientAs(t *testing.T, m managed, token string) *client.Client {
	t.Helper()
	c, err := client.OverHTTP(m.url, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// waysOf returns all ways to ask a server.
func waysOf(t *testing.T, m managed) []way {
	over, err := client.OverSocket(m.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(over.Close)
	command := func(flags ...string) func(string, string, ...string) string {
		return func(operation, _ string, command ...string) string {
			_, stdout, stderr := run(slices.Concat(strings.Fields(operation), command, []string{"--json"}, flags)...)
			return stdout + stderr
		}
	}
	return []way{
		{"over the socket", func(operation, arguments string, _ ...string) string {
			answer, err := over.Do(t.Context(), operation, json.RawMessage(arguments), "")
			if err != nil {
				return err.Error()
			}
			return string(answer.Result)
		}},
		{"over HTTP", func(operation, arguments string, _ ...string) string {
			return ask(t, m, admin.Find(operation), arguments)
		}},
		{"by command", command("--config", m.config)},
		{"by command over HTTP", command("--server", m.url)},
	}
}

// varies matches the parts that differ between two tokens that are otherwise the same.
var varies = regexp.MustCompile(`tsv_[a-z2-7_]*|"(version|by|created|expires|former_until|used)": ?"[^"]*",?|\s`)

// TestTokens makes, shows, changes and revokes a token in each way: the answers are the same, and each change is in force.
// Proves: A caller reaches its own tools only
func TestTokens(t *testing.T) {
	t.Parallel()
	m := manage(t, "[[auth.token]]\nname = \"declared\"\nsha256 = \"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"\nscopes = [\"shop\"]\n")
	const letIn = http.StatusUnprocessableEntity // this operation needs arguments
	call := func(secret string) int {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+"/shop/echo", strings.NewReader("{}"))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+secret)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	secretIn := func(answer string) string {
		var made struct {
			Secret string `json:"secret"`
		}
		if err := json.Unmarshal([]byte(answer), &made); err != nil || !strings.HasPrefix(made.Secret, "tsv_") {
			t.Fatalf("got %s", answer)
		}
		return made.Secret
	}
	var first []string
	for number, w := range waysOf(t, m) {
		var said []string
		step := func(operation, arguments string, command ...string) string {
			answer := w.ask(operation, arguments, command...)
			said = append(said, answer)
			return answer
		}
		secret := secretIn(step("tokens add", `{"name":"ci","scopes":["shop/*","nothing/*"],"expires":"30d","networks":["127.0.0.0/8"],"rate":"1000/s","burst":500,"concurrent":9}`, "ci", "--rate", "1000/s", "--burst", "500", "--concurrent", "9", "--scope", "shop/*", "--scope", "nothing/*", "--expires", "30d", "--cidr", "127.0.0.0/8"))
		if got := call(secret); got != letIn {
			t.Errorf("%s: a new token: got %d", w.name, got)
		}
		step("tokens list", `{}`)
		step("tokens show", `{"name":"ci"}`, "ci")
		step("tokens show", `{"name":"declared"}`, "declared")
		step("tokens scopes", `{"name":"ci","scopes":["weather/*"]}`, "ci", "weather/*")
		if got := call(secret); got != http.StatusNotFound {
			t.Errorf("%s: a token with other scopes: got %d", w.name, got)
		}
		step("tokens scopes", `{"name":"ci","scopes":["shop"]}`, "ci", "shop")
		step("tokens rate", `{"name":"ci","rate":"1/h"}`, "ci", "--rate", "1/h")
		if answer := w.ask("explain", `{"principal":"ci","tool":"shop/echo"}`, "ci", "shop/echo"); !strings.Contains(answer, "ci has 1/h, 1 at once; ") {
			t.Errorf("%s: got %s", w.name, answer)
		}
		slow := "slow" + strconv.Itoa(number)
		limited := secretIn(w.ask("tokens add", `{"name":"`+slow+`","scopes":["shop"],"rate":"1/h"}`, slow, "--scope", "shop", "--rate", "1/h"))
		if first, second := call(limited), call(limited); first != letIn || second != http.StatusTooManyRequests {
			t.Errorf("%s: with one call an hour: got %d and %d", w.name, first, second)
		}
		w.ask("tokens revoke", `{"name":"`+slow+`"}`, slow)
		if answer := step("tokens rate", `{"name":"ci"}`, "ci"); strings.Contains(answer, `"rate"`) {
			t.Errorf("%s: a token whose rate was removed: got %s", w.name, answer)
		}
		next := secretIn(step("tokens rotate", `{"name":"ci","grace":"1h"}`, "ci", "--grace", "1h"))
		if call(secret) != letIn || call(next) != letIn {
			t.Errorf("%s: one of two secrets is refused", w.name)
		}
		narrower := func(by, name string) string {
			answer, err := clientAs(t, m, by).Do(t.Context(), "tokens attenuate", admin.NewToken{Name: name, Scopes: []string{"shop/echo"}}, "")
			if err != nil {
				t.Fatal(err)
			}
			return secretIn(string(answer.Result))
		}
		narrow := narrower(narrower(next, "agent"), "deep")
		w.ask("tokens add", `{"name":"cinema","scopes":["shop"]}`, "cinema", "--scope", "shop")
		const ends = `"ends":["ci/agent","ci/agent/deep"]`
		if answer := step("tokens revoke", `{"name":"ci","dry_run":true}`, "ci", "--dry-run"); !strings.Contains(varies.ReplaceAllString(answer, ""), ends) {
			t.Errorf("%s: what would be revoked: got %s", w.name, answer)
		}
		if call(narrow) != letIn || call(next) != letIn {
			t.Errorf("%s: a token was revoked by asking what would be", w.name)
		}
		if answer := step("tokens revoke", `{"name":"ci"}`, "ci"); !strings.Contains(varies.ReplaceAllString(answer, ""), ends) {
			t.Errorf("%s: what was revoked: got %s", w.name, answer)
		}
		if call(narrow) != http.StatusUnauthorized {
			t.Errorf("%s: a narrower token is accepted after its maker was revoked", w.name)
		}
		w.ask("tokens revoke", `{"name":"cinema"}`, "cinema")
		if call(secret) != http.StatusUnauthorized || call(next) != http.StatusUnauthorized {
			t.Errorf("%s: a token that was revoked is accepted", w.name)
		}
		for i, answer := range said {
			said[i] = varies.ReplaceAllString(answer, "")
		}
		if first == nil {
			first = said
		} else if !slices.Equal(said, first) {
			t.Errorf("%s: got\n%s\nand over the socket\n%s", w.name, strings.Join(said, "\n"), strings.Join(first, "\n"))
		}
		if !strings.Contains(said[0], `scope2of2matchesnotool`) {
			t.Errorf("%s: nothing says that a scope matches nothing: %s", w.name, said[0])
		}
		for operation, arguments := range map[string]string{
			"tokens revoke": `{"name":"nobody"}`, "tokens show": `{"name":"nobody"}`, "tokens rotate": `{"name":"nobody"}`, "tokens scopes": `{"name":"nobody","scopes":[]}`, "tokens rate": `{"name":"nobody"}`,
		} {
			if answer := w.ask(operation, arguments, "nobody"); !strings.Contains(answer, "There is no such token") {
				t.Errorf("%s: %s with an unknown token: got %s", w.name, operation, answer)
			}
		}
		for what, test := range map[string][3]string{
			"a taken name":                {`{"name":"declared"}`, "declared", "declares a token of this name"},
			"a bad name":                  {`{"name":"a/b"}`, "a/b", "The name is not valid"},
			"a token in place of a name":  {`{"name":"tsv_abc"}`, "tsv_abc", "The name begins with tsv_"},
			"an unknown role":             {`{"name":"x","scopes":["admin:write"]}`, "x --scope admin:write", "there is no such role"},
			"a bad time":                  {`{"name":"x","expires":"soon"}`, "x --expires soon", " is not a time from now on"},
			"a bad network":               {`{"name":"x","networks":["here"]}`, "x --cidr here", "is not a range of addresses"},
			"no rate":                     {`{"name":"x","rate":"0/s"}`, "x --rate 0/s", " is not a rate: write a whole number, a slash and a unit"},
			"a number in place of a rate": {`{"name":"x","rate":"10"}`, "x --rate 10", "such as 10/s, 100/min or 1000/h"},
			"a burst without a rate":      {`{"name":"x","burst":5}`, "x --burst 5", "Burst needs a rate"},
			"a huge rate":                 {`{"name":"x","rate":"2000000/s"}`, "x --rate 2000000/s", " is more than a rate can be: write at most 1000000/s"},
			"a date":                      {`{"name":"x","expires":"2027-01-31"}`, "x --expires 2027-01-31", " is not a time from now on: write a whole number and a unit, such as 90d, 12h or 30m, or never"},
			"no time":                     {`{"name":"x","expires":"1ns"}`, "x --expires 1ns", " is not a time from now on"},
			"many days":                   {`{"name":"x","expires":"99999999d"}`, "x --expires 99999999d", "lasts at most 1825 days"},
			"one address":                 {`{"name":"x","networks":["10.0.0.1"]}`, "x --cidr 10.0.0.1", " is one address: write 10.0.0.1/32 for just this one"},
			"IPv4 in IPv6":                {`{"name":"x","networks":["::ffff:10.0.0.0/104"]}`, "x --cidr ::ffff:10.0.0.0/104", "write it as IPv4"},
			"a time that overflows":       {`{"name":"x","expires":"65000d"}`, "x --expires 65000d", "lasts at most 1825 days"},
		} {
			if answer := w.ask("tokens add", test[0], strings.Fields(test[1])...); !strings.Contains(answer, test[2]) {
				t.Errorf("%s: %s: got %s, want %q", w.name, what, answer, test[2])
			}
		}
	}
}

// TestTokensAsk calls operations with tokens of all kinds: each token may see itself, and of the rest only what its roles allow.
// Proves: A caller reaches its own tools only
func TestTokensAsk(t *testing.T) {
	t.Parallel()
	m := manage(t, "upload = true\n")
	ways := waysOf(t, m)
	made := map[string]string{}
	for name, scopes := range map[string]string{"tools": `["*"]`, "reads": `["admin:read"]`, "admin": `["admin"]`, "metrics": `["metrics"]`, "none": `[]`} {
		var answer struct{ Secret string }
		if err := json.Unmarshal([]byte(ways[0].ask("tokens add", `{"name":"`+name+`","scopes":`+scopes+`}`)), &answer); err != nil {
			t.Fatal(err)
		}
		made[name] = answer.Secret
	}
	for name, secret := range made {
		c, err := client.OverHTTP(m.url, secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range admin.Operations() {
			arguments := `{"name":"nobody","scopes":[]}`
			if !o.Changes() {
				arguments = `{}`
			}
			if o.Name == "tokens attenuate" {
				arguments = `{"name":"x"}`
			}
			if o.Name == "tokens show" {
				arguments = `{"name":"reads"}`
			}
			_, err := c.Do(t.Context(), o.Name, json.RawMessage(arguments), "")
			failed, _ := errors.AsType[*wasmtools.Error](err)
			refused := failed != nil && failed.Code == wasmtools.CodeForbidden
			may := !o.Local && (o.Role == "" || name == "admin" || name == "reads" && !o.Changes())
			if refused == may {
				t.Errorf("%s asks for %s: got %v; it may: %t", name, o.Name, err, may)
			}
		}
		c.Close()
	}
	c, err := client.OverHTTP(m.url, made["tools"])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answer, err := c.Do(t.Context(), "self", struct{}{}, "")
	if err != nil || !strings.Contains(string(answer.Result), `"name":"tools","origin":"issued","scopes":["*"],"roles":[]`) {
		t.Errorf("got %s, %v", answer.Result, err)
	}
	if _, err := c.Do(t.Context(), "tokens attenuate", admin.NewToken{Name: "up", Scopes: []string{"admin"}}, ""); err == nil || !strings.Contains(err.Error(), "is more than the token has") {
		t.Errorf("a token makes itself an administrator: %v", err)
	}
	nobody, err := client.OverHTTP(m.url, "")
	if err == nil {
		defer nobody.Close()
		if _, err := nobody.Do(t.Context(), "self", struct{}{}, ""); err == nil {
			t.Error("nobody is somebody")
		}
	}
}
