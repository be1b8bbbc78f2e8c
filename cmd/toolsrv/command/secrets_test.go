package command_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestSecrets sets, lists and removes a caller's secret in each way. No answer, no entry of the audit and no message has the value.
// Proves: Secrets stay secret
func TestSecrets(t *testing.T) {
	t.Parallel()
	m := manage(t, fmt.Sprintf("[secrets]\ndirectory = %q\n", t.TempDir()))
	const value = "ghp_of-a-caller-1234567"
	said := ""
	for _, way := range waysOf(t, m) {
		set := func(v string) string {
			if strings.HasPrefix(way.name, "by command") {
				flags := []string{"--config", m.config}
				if way.name != "by command" {
					flags = []string{"--server", m.url}
				}
				_, stdout, stderr := runWith(v+"\n", slices.Concat([]string{"secrets", "set", "github", "--principal", "issued+ann", "--json"}, flags)...)
				return stdout + stderr
			}
			return way.ask("secrets set", `{"name":"github","value":"`+v+`","principal":"issued+ann"}`)
		}
		for _, step := range []struct{ got, want string }{
			{set(value), `^{"secret":{"principal":"issued\+ann","name":"github","source":"state",.*"warnings":\["no tool `},
			{set(value), `"principal":"issued\+ann"`},
			{set("too-short-1"), `not acceptable as a secret`},
			{set("a word that stands in answers 1"), `not acceptable as a secret`},
			{way.ask("secrets list", `{}`, "--json"), `{"principal":"issued\+ann","name":"github","source":"state"`},
			{way.ask("secrets list", `{"principal":"issued+bob"}`, "--principal", "issued+bob"), `"secrets":\[\]`},
			{way.ask("secrets list", `{"principal":"../ann"}`, "--principal", "../ann"), `The principal is not valid`},
			{way.ask("secrets remove", `{"name":"github","principal":"issued+bob"}`, "github", "--principal", "issued+bob"), `no secret of that name`},
			{way.ask("secrets remove", `{"name":"github","principal":"issued+ann"}`, "github", "--principal", "issued+ann"), `^{"secret":{"principal":"issued\+ann","name":"github"`},
			{way.ask("secrets remove", `{"name":"github","principal":"issued+ann"}`, "github", "--principal", "issued+ann"), `no secret of that name`},
			{way.ask("secrets remove", `{"name":"github"}`, "github"), `Name the caller whose secret it is|This token has no name`},
		} {
			compact := regexp.MustCompile(`\s*\n\s*|([,:]) `).ReplaceAllString(step.got, "$1")
			if !regexp.MustCompile(step.want).MatchString(strings.ReplaceAll(compact, `": `, `":`)) {
				t.Errorf("%s: got %s, want %s", way.name, compact, step.want)
			}
			said += step.got
		}
	}
	for _, wrong := range []string{`{"name":"github","value":"` + strings.Repeat(value, 300) + `"}`, `{"name":"github","value":["` + value + `"]}`, `{"name":"github","valeu":"` + value + `"}`, `{"name":"` + value + value + value + `","value":"x"}`, `{"name":"github","value":"` + value + `"`} {
		if got := ask(t, m, admin.Find("secrets set"), wrong); !strings.Contains(got, "invalid_arguments") || strings.Contains(got, value) {
			t.Errorf("%.60s: got %s", wrong, got)
		}
	}
	_, audited, _ := run("audit", "--all", "--json", "--config", m.config)
	if !strings.Contains(audited, `"secrets.set"`) || !strings.Contains(audited, "issued+ann github") {
		t.Errorf("the audit has\n%s", audited)
	}
	if strings.Contains(said+audited, value) {
		t.Errorf("the value is shown: %s%s", said, audited)
	}
}

// TestOwnSecretsOnly checks that callers can only set their own secrets, and that a new token finds no secrets of an earlier token with its name.
// Proves: Callers keep apart
func TestOwnSecretsOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "principals/issued+bob/given", "what-an-operator-gave-1")
	const grant = "[[grant]]\nmatch = \"weather/*\"\nkv = \"1MiB\"\nsettings = {units = \"metric\"}\nsecrets = [\"key\"]\nhttp = [\"https://api.example.com\"]\nheaders = {\"https://api.example.com\" = {Authorization = \"Bearer ${secret:github@principal}\"}}\n"
	m := manage(t, grant+fmt.Sprintf("[secrets]\ndirectory = %q\nfiles = {key = \"key\"}\n", dir))
	over, err := client.OverSocket(m.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(over.Close)
	made := func(name string, scopes ...string) string {
		t.Helper()
		var made admin.TokenMade
		answer, err := over.Do(t.Context(), "tokens add", admin.NewToken{Name: name, Scopes: append(scopes, "shop/*")}, "")
		if err == nil {
			err = answer.Into(&made)
		}
		if err != nil {
			t.Fatal(err)
		}
		return made.Secret
	}
	as := func(token, operation string, arguments any) string {
		t.Helper()
		c, err := client.OverHTTP(m.url, token)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		answer, err := c.Do(t.Context(), operation, arguments, "")
		if err != nil {
			return err.Error()
		}
		return string(answer.Result)
	}
	ann, bob, carol := made("ann"), made("bob"), made("carol", "weather/*")
	agent := as(ann, "tokens attenuate", admin.NewToken{Name: "agent", Scopes: []string{"shop/echo"}})
	agent = regexp.MustCompile(`tsv_[a-z2-7]{10}_[a-z2-7]{59}`).FindString(agent)
	for _, step := range []struct{ what, got, want string }{
		{"ann sets hers", as(ann, "secrets set", admin.NewSecret{Name: "github", Value: "the-secret-of-ann-1"}), `"principal":"issued+ann"`},
		{"her agent sets its own", as(agent, "secrets set", admin.NewSecret{Name: "github", Value: "the-secret-of-agent-1"}), `"principal":"issued+ann%2fagent"`},
		{"bob does not see that secret", as(bob, "secrets list", struct{}{}), `{"principal":"issued+bob","secrets":[{"principal":"issued+bob","name":"given","source":"directory"}],"wanted":[]}`},
		{"carol may call a tool that uses one", as(carol, "secrets list", struct{}{}), `{"principal":"issued+carol","secrets":[],"wanted":[{"name":"github","tools":["/weather/now"]}]}`},
		{"ann sees only her own", as(ann, "secrets list", struct{}{}), `{"principal":"issued+ann","secrets":[{"principal":"issued+ann","name":"github"`},
		{"bob asks for ann's", as(bob, "secrets list", admin.CallersArguments{Principal: "issued+ann"}), "Only an administrator"},
		{"bob sets hers", as(bob, "secrets set", admin.NewSecret{Name: "github", Value: "the-secret-of-bob-1", Principal: "issued+ann"}), "Only an administrator"},
		{"bob removes hers", as(bob, "secrets remove", admin.OwnSecretName{Name: "github", Principal: "issued+ann"}), "Only an administrator"},
		{"ann names herself", as(ann, "secrets remove", admin.OwnSecretName{Name: "github", Principal: "issued+ann"}), "Only an administrator"},
		{"bob removes a secret that bob doesn't have", as(bob, "secrets remove", admin.OwnSecretName{Name: "github"}), "no secret of that name"},
		{"bob changes a secret that the operator has given", as(bob, "secrets set", admin.NewSecret{Name: "given", Value: "the-secret-of-bob-1"}), "The operator has given"},
		{"a numbered token", as(adminToken, "secrets set", admin.NewSecret{Name: "github", Value: "the-secret-of-nobody-1"}), "This token has no name"},
	} {
		if !strings.Contains(step.got, step.want) {
			t.Errorf("%s: got %s, want %s", step.what, step.got, step.want)
		}
	}
	// A token that the agent has made ends together with the agent's token.
	deep := as(agent, "tokens attenuate", admin.NewToken{Name: "deep", Scopes: []string{"shop/echo"}})
	deep = regexp.MustCompile(`tsv_[a-z2-7]{10}_[a-z2-7]{59}`).FindString(deep)
	if got := as(deep, "secrets set", admin.NewSecret{Name: "github", Value: "the-secret-of-deep-1"}); !strings.Contains(got, `"principal":"issued+ann%2fagent%2fdeep"`) {
		t.Errorf("the agent's agent: got %s", got)
	}
	if _, err := over.Do(t.Context(), "tokens revoke", admin.Revocation{Name: "ann/agent"}, ""); err != nil {
		t.Fatal(err)
	}
	if answer, err := over.Do(t.Context(), "secrets list", struct{}{}, ""); err != nil || strings.Contains(string(answer.Result), "agent") || !strings.Contains(string(answer.Result), `"issued+ann"`) {
		t.Errorf("after the agent was revoked: got %s, %v", answer.Result, err)
	}
	if _, err := over.Do(t.Context(), "tokens revoke", admin.Revocation{Name: "ann"}, ""); err != nil {
		t.Fatal(err)
	}
	if answer, err := over.Do(t.Context(), "secrets list", struct{}{}, ""); err != nil || strings.Contains(string(answer.Result), "issued+ann") {
		t.Errorf("after ann was revoked: got %s, %v", answer.Result, err)
	}
	// A secret that was left behind, as after a crash, does not belong to the next token of that name.
	if _, err := over.Do(t.Context(), "secrets set", admin.NewSecret{Name: "github", Value: "the-secret-of-ann-1", Principal: "issued+ann"}, ""); err != nil {
		t.Fatal(err)
	}
	if got := as(made("ann"), "secrets list", struct{}{}); !strings.Contains(got, `"secrets":[]`) {
		t.Errorf("another ann has %s", got)
	}
	for range 40 { // refused attempts must not fill the audit
		as(bob, "secrets set", admin.NewSecret{Name: "github", Value: "a"})
		as(bob, "secrets remove", admin.OwnSecretName{Name: "nothing"})
		as(bob, "secrets set", admin.NewSecret{Name: "github", Value: "the-secret-of-bob-1"})
	}
	answer, err := over.Do(t.Context(), "audit", admin.AuditArguments{}, "")
	if err != nil || strings.Count(string(answer.Result), `"target":"issued+bob github"`) != 1 {
		t.Errorf("the audit has %s, %v", answer.Result, err)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+"/admin/v1/secrets/set", strings.NewReader(`{"name":"github","value":"the-secret-of-a-page-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+bob)
	q.Header.Set("Origin", "https://evil.example")
	page, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	if page.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another origin: got %d", page.StatusCode)
	}
}
