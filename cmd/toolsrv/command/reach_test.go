package command_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestReachDiff compares configurations with tools, one of which calls another.
func TestReachDiff(t *testing.T) {
	t.Parallel()
	guest := testkit.Fixture(t, "e2e/guest")
	dir := t.TempDir()
	manifest := func(namespace, name, needs string) string {
		return strings.Replace(manifestOf(namespace, name), `"abi":1`, `"abi":1,"needs":`+needs, 1)
	}
	testkit.Put(t, dir, "tools/outer.wasm", sandboxtest.WithManifest(t, guest, manifest("outer", "echo", `{"tools":["inner/echo"]}`)))
	testkit.Put(t, dir, "tools/inner.wasm", sandboxtest.WithManifest(t, guest, manifest("inner", "echo", `{"http":["https://*.example.com"],"secrets":["key"]}`)))
	key := testkit.Put(t, dir, "key", []byte("k3y-k3y-k3y"))
	number := 0
	file := func(text string) string {
		number++
		return testkit.Put(t, dir, fmt.Sprintf("%d.toml", number), []byte(text+"[secrets]\nfiles = {key = '"+key+"'}\n"))
	}
	calls := "[[grant]]\nmatch = \"outer/*\"\ntools = [\"inner/*\"]\n"
	inner := "[[grant]]\nmatch = \"inner/*\"\nhttp = [\"https://api.example.com/v1\"]\nsecrets = [\"key\"]\n"
	both := file(calls + inner)
	for _, c := range []struct {
		name         string
		old, new     string
		args         []string
		code         int
		stdout       []string
		without, err string
	}{
		{"the same", both, both, nil, 0, []string{"Nobody can reach more or less than before.\n"}, "", ""},
		{"more, through another tool", file(inner), both, nil, 3, []string{
			"+ everybody outer/echo http https://api.example.com/v1 inner/echo\n",
			"+ everybody outer/echo secrets key inner/echo shown to the tool\n"}, "- ", ""},
		{"less", both, file(inner), nil, 0, []string{"- everybody outer/echo http "}, "+ ", ""},
		{"a wider grant", both, file(calls + strings.Replace(inner, "/v1", "", 1)), nil, 3, []string{
			"+ everybody inner/echo http https://api.example.com\n", "+ everybody outer/echo http https://api.example.com inner/echo\n"}, "", ""},
		{"no more than the tool declares", both, file(calls + strings.Replace(inner, `"https://api.example.com/v1"`, `"https://api.example.com/v1", "https://other.example"`, 1)),
			nil, 0, []string{"Nobody can reach more or less than before.\n"}, "other.example", ""},
		{"a secret in headers", both, file(calls + strings.Replace(inner, "secrets =", "headers = {\"https://api.example.com/v1\" = {X-Key = \"${secret:key}\"}}\nsecrets =", 1)), nil, 3,
			[]string{"+ everybody inner/echo secrets key put into requests to https://api.example.com/v1\n"}, "k3y-k3y", ""},
		{"another caller", both, file("[auth]\ntokens = [\"hush\"]\n" + calls + inner), []string{"--json"}, 3, []string{`"principal": "token"`, `"tool": "outer/echo"`, `"through": [`, `"lost": [`}, "hush", ""},
		{"a tool that is switched off", both, file("[tools]\ndisabled = [\"inner\"]\n" + calls + inner), nil, 0, []string{"- everybody inner/echo", "- everybody outer/echo"}, "+ ", ""},
		{"one file", both, "", nil, 2, nil, "", "name the old one and the new one"},
		{"a wrong configuration", both, file("[[grant]]\nmatch = 1\n"), nil, 1, nil, "", "grant[0].match"},
		{"a server, too", both, both, []string{"--server", "https://tools.example.com"}, 2, nil, "", "leave out --config and --server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"reach", "--diff", c.old}, c.args...)
			if c.new != "" {
				args = append(args, c.new)
			}
			code, stdout, stderr := run(args...)
			stdout = regexp.MustCompile(` +`).ReplaceAllString(stdout, " ")
			if code != c.code || !strings.Contains(stderr, c.err) {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, stdout, stderr)
			}
			for _, want := range c.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("no %q in\n%s", want, stdout)
				}
			}
			if c.without != "" && strings.Contains(stdout+stderr, c.without) {
				t.Errorf("%q in\n%s%s", c.without, stdout, stderr)
			}
		})
	}
}
