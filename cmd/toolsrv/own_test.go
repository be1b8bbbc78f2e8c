//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestTeamOwn lets two people set their keys with the command in docs/team.md, and call a tool with the page's grant, in which only the service's
// address is different. The tool acts for each with that person's key, and for nobody without a key.
// Proves: Callers keep apart
func TestTeamOwn(t *testing.T) {
	t.Parallel()
	var grant, set string
	for _, b := range pagetest.Blocks(string(testkit.Read(t, "../../docs/team.md"))) {
		switch {
		case b.Language == "toml" && strings.Contains(b.Text, "@principal"):
			grant = b.Text
		case b.Language == "sh" && strings.Contains(b.Text, "toolsrv secrets set"):
			set = strings.TrimSpace(b.Text)
		}
	}
	args, key, ok := strings.Cut(strings.TrimPrefix(set, "TOOLSRV_TOKEN=tsv_... toolsrv "), " < ")
	if !ok || key != "github.key" {
		t.Fatalf("docs/team.md has the command %q", set)
	}
	var mu sync.Mutex
	var sent []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Authorization"))
		fmt.Fprintf(w, "%q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(api.Close)
	config := strings.ReplaceAll(grant, "https://api.github.com", api.URL) + "private = [\"127.0.0.0/8\"]\n"
	manifest := fmt.Sprintf(`{"abi":1,"namespace":"github","needs":{"http":[%q]},"tools":[{"name":"send","description":"Sends a request.","parameters":{"type":"object"}}]}`, api.URL)
	dir := site(t, config, map[string][]byte{"github.wasm": sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/own"), manifest)})
	s := start(t, dir)
	tokenOf := func(name string) string {
		out, err := command("tokens", "add", name, "--scope", "github/*", "--config", filepath.Join(dir, "toolsrv.toml")).Output()
		secret := regexp.MustCompile(`tsv_[a-z2-7]{10}_[a-z2-7]{59}`).FindString(string(out))
		if err != nil || secret == "" {
			t.Fatalf("got %s, %v", out, err)
		}
		return secret
	}
	call := func(bearer string) (int, string) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/github/send", strings.NewReader(fmt.Sprintf(`{"method":"GET","url":%q}`, api.URL+"/user")))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+bearer)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body := new(strings.Builder)
		if err := answer.Write(body); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, body.String()
	}
	keys := map[string]string{"ann": "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "bob": "ghp_9aB3c4D5e6F7081920a1B2c3D4e5F607182930"}
	for _, name := range []string{"ann", "bob"} {
		bearer := tokenOf(name)
		if status, body := call(bearer); status == http.StatusOK || !strings.Contains(body, "no_secret") {
			t.Errorf("%s without a key: got %d %s", name, status, body)
		}
		cmd := command(strings.Fields(strings.ReplaceAll(args, "https://tools.example.com", s.url))...)
		cmd.Env, cmd.Stdin = append(cmd.Environ(), "TOOLSRV_TOKEN="+bearer), strings.NewReader(keys[name]+"\n")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "The secret github of issued+"+name+" is set.\n" {
			t.Fatalf("%s: got %s, %v", name, out, err)
		}
		if status, body := call(bearer); status != http.StatusOK || !strings.Contains(body, "Bearer [secret]") {
			t.Errorf("%s: got %d %s", name, status, body)
		}
		mu.Lock()
		if len(sent) != 1 || sent[0] != "Bearer "+keys[name] {
			t.Errorf("for %s the service got %q", name, sent)
		}
		sent = nil
		mu.Unlock()
	}
	if status, _ := call(""); status != http.StatusUnauthorized {
		t.Errorf("without a token: got %d", status)
	}
}
