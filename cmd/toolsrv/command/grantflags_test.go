package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// needing returns a file whose tool echo needs everything that flags can grant.
func needing(t *testing.T) string {
	t.Helper()
	manifest := strings.Replace(manifestOf("shop", outcomes...), `"abi":1`, `"abi":1,"needs":{"http":["https://api.example.com/v1/"],"secrets":["stripe_key"],"kv":true}`, 1)
	manifest = strings.Replace(manifest, `"parameters"`, `"examples":[{"arguments":`+order+`}],"parameters"`, 1)
	return testkit.Put(t, t.TempDir(), "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifest))
}

// TestGrantFlags calls a tool that needs grants, with some of them and with all.
func TestGrantFlags(t *testing.T) {
	t.Parallel()
	file, folder := needing(t), t.TempDir()
	key := testkit.Put(t, folder, "key", []byte("sk_test_0123456789\n"))
	kv := testkit.Put(t, folder, "kv.toml", []byte("[[grant]]\nkv = \"1MiB\"\n"))
	other := testkit.Put(t, folder, "other.toml", []byte("[[grant]]\nmatch = \"other/*\"\nkv = \"1MiB\"\n"))
	all := testkit.Put(t, folder, "all.toml", []byte(`
[[grant]]
match = "shop/*"
http = ["https://api.example.com"]
kv = "1MiB"
secrets = ["stripe_key"]
[secrets]
files = {stripe_key = "key"}
`))
	config := testkit.Put(t, folder, "toolsrv.toml", testkit.Read(t, all))
	header := testkit.Put(t, folder, "header.toml", []byte(`
[[grant]]
match = "shop/*"
http = ["https://api.example.com"]
headers = {"https://api.example.com" = {X-Key = "${secret:misspelt}"}}
kv = "1MiB"
`))
	allowed := []string{"--allow-http", "https://api.example.com", "--secret", "stripe_key=@" + key, "--grant", kv}
	const http, secret, file3 = "  grant it here: --allow-http 'https://api.example.com/v1/'\n", "  grant it here: --secret stripe_key=@FILE\n", "  grant it here: --grant FILE, with a [[grant]]"
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr []string // each is there
		absent string
	}{
		{"nothing", nil, 12, []string{"tool_not_granted: ", http, secret, file3}, ""},
		{"flags", allowed, 0, nil, "grant"},
		{"a file", []string{"--grant", all}, 0, nil, "grant"},
		{"a configuration", []string{"--config", config}, 0, nil, "grant"},
		{"no HTTP", allowed[2:], 12, []string{http}, "--secret"},
		{"another URL", append([]string{"--allow-http", "https://api.example.com/v2/"}, allowed[2:]...), 12, []string{http}, "--secret"},
		{"no secret", append(allowed[:2:2], allowed[4:]...), 12, []string{secret}, "--allow-http"},
		{"no KV", allowed[:4], 12, []string{file3}, "--allow-http"},
		{"a secret in a header, without a source", append([]string{"--grant", header}, allowed[2:4]...), 12, []string{"in the headers of its grant (line 2)", "  grant it here: --secret NAME=@FILE, with the name in that header\n"}, "misspelt"},
		{"a secret in a header, from a flag", append([]string{"--grant", header, "--secret", "misspelt=@" + key}, allowed[2:4]...), 0, nil, "grant"},
		{"a grant for other tools", append(allowed[:4:4], "--grant", other), 12, []string{file3}, "--allow-http"},
		{"a secret on the command line", []string{"--secret", "stripe_key=sk_live_1"}, 2, []string{"--secret stripe_key: other users can read the command line: write the secret into a file, and name that, as in --secret stripe_key=@FILE"}, "sk_live_1"},
		{"a secret without a name", []string{"--secret", "@" + key}, 2, []string{"is not a valid name"}, ""},
		{"a missing file for a secret", append(allowed[:2:2], "--secret", "stripe_key=@"+filepath.Join(folder, "none"), "--grant", kv), 1, []string{"stripe_key"}, ""},
		{"no URL", []string{"--allow-http", "api.example.com"}, 2, []string{"--allow-http api.example.com: ", "is not the address of a service"}, ""},
		{"a missing file for grants", []string{"--grant", filepath.Join(folder, "none.toml")}, 1, []string{"read the grants: "}, ""},
		{"an empty name", []string{"--grant", ""}, 2, []string{"it is empty"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"call", file, "echo", order}, c.args...)...)
			if code != c.code || code == 0 && stdout != order+"\n" {
				t.Errorf("got %d, %q, want %d\n%s", code, stdout, c.code, stderr)
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("standard error has no %q:\n%s", want, stderr)
				}
			}
			if c.absent != "" && strings.Contains(stderr, c.absent) {
				t.Errorf("standard error has %q:\n%s", c.absent, stderr)
			}
		})
	}
	for _, args := range [][]string{{"test", file}, {"bench", file, "echo", order}} {
		if code, _, stderr := run(args...); code == 0 || strings.Count(stderr, http) != 1 {
			t.Errorf("%s without grants: got %d, want a failure that says how to grant it:\n%s", args[0], code, stderr)
		}
	}
	if code, stdout, stderr := run(append([]string{"test", file}, allowed...)...); code != 0 || !strings.Contains(stdout, "ok ") {
		t.Errorf("test with grants: got %d, %s%s", code, stdout, stderr)
	}
}

// TestGrantSettings checks that a client's settings grant the same as the command, whatever folder it is started in.
func TestGrantSettings(t *testing.T) {
	t.Parallel()
	file := needing(t)
	key := testkit.Put(t, t.TempDir(), "key", []byte("sk_test_0123456789"))
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(folder, key)
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run("mcp", file, "--print-config", "claude-code", "--allow-http", "https://api.example.com", "--secret", "stripe_key=@"+relative)
	if code != 0 || !strings.Contains(stdout, `"--allow-http"`) || !strings.Contains(stdout, `"stripe_key=@`+key+`"`) {
		t.Errorf("got %d, %s%s", code, stdout, stderr)
	}
}
