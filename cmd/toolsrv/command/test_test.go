package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// examples returns the manifest of the tool echo with examples.
func examples(list string) string {
	return strings.Replace(manifestOf("shop", "echo"), `"parameters"`, `"result":{"type":"object","properties":{"count":{"maximum":9}}},"examples":[`+list+`],"parameters"`, 1)
}

func TestTest(t *testing.T) {
	t.Parallel()
	good := `{"arguments":{"item":"tea"},"result":{"count":1.0,"item":"tea"}},{"arguments":{"item":"tea","count":9}}`
	for _, c := range []struct {
		name, list     string
		code           int
		stdout, stderr []string
	}{
		{"all well", good, 0, []string{"ok    /shop/echo, example 1 (", "ok    /shop/echo, example 2 ("}, nil},
		{"another result", good + `,{"arguments":{"item":"tea"},"result":{"count":2,"item":"tea"}}`, 1,
			[]string{"ok    /shop/echo, example 1", "FAIL  /shop/echo, example 3", "at count: got 1, want 2", `arguments: {"item":"tea"}`, `want:      {"count":2,"item":"tea"}`, `got:       {"item":"tea","count":1}`},
			[]string{"toolsrv: 1 of 3 examples failed\n"}},
		{"arguments that don't fit", `{"arguments":{"item":1}}`, 1, []string{"FAIL", "item: Input should be a valid string"}, []string{"1 of 1 examples failed"}},
		{"a result that does not fit", `{"arguments":{"item":"tea","count":10}}`, 1, []string{"does not fit its own schema", "count: Input should be less than or equal to 9"}, []string{"1 of 1"}},
		{"none", "", 0, nil, []string{"shop.wasm has no examples: add some"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := testkit.Put(t, t.TempDir(), "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), examples(c.list)))
			code, stdout, stderr := run("test", file)
			if code != c.code || (stdout == "") != (c.stdout == nil) || (stderr == "") != (c.stderr == nil) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d", code, stdout, stderr, c.code)
			}
			for _, want := range c.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("standard output %q, want %q", stdout, want)
				}
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("standard error %q, want %q", stderr, want)
				}
			}
			code, stdout, _ = run("test", "--json", file)
			var got struct {
				Passed, Failed int
				Examples       []struct {
					Path    string
					Example int
					OK      bool
					Problem string
				}
			}
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != c.code || len(got.Examples) != got.Passed+got.Failed || (got.Failed > 0) != (code == 1) {
				t.Errorf("--json: exit code %d, %v, %s", code, err, stdout)
			}
			for i, e := range got.Examples {
				if e.Path != "/shop/echo" || e.Example != i+1 || e.OK != (e.Problem == "") {
					t.Errorf("--json: got %+v", e)
				}
			}
		})
	}
}

// TestTestTells checks that test reports tools without examples, and why a tool broke.
func TestTestTells(t *testing.T) {
	t.Parallel()
	text := strings.Replace(manifestOf("shop", "echo", "refuse", "reject", "trap"), `"name":"trap",`, `"name":"trap","examples":[{"arguments":{"item":"tea"}}],`, 1)
	file := testkit.Put(t, t.TempDir(), "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), text))
	code, stdout, stderr := run("test", file)
	if code != 1 || !strings.Contains(stdout, "tool_trapped: The tool broke: unreachable.") || !strings.Contains(stdout, "cause:     ") {
		t.Errorf("exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
	text = strings.Replace(text, `"name":"trap","examples":[{"arguments":{"item":"tea"}}]`, `"name":"trap"`, 1)
	text = strings.Replace(text, `"name":"echo",`, `"name":"echo","examples":[{"arguments":{"item":"tea"}}],`, 1)
	code, _, stderr = run("test", testkit.Put(t, t.TempDir(), "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), text)))
	if code != 0 || stderr != "without an example: /shop/refuse /shop/reject /shop/trap\n" {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
	for _, args := range [][]string{{"test"}, {"test", file, "echo"}, {"test", file, "--timeout", "soon"}} {
		if code, stdout, _ := run(args...); code != 2 || stdout != "" {
			t.Errorf("%q: exit code %d, standard output %q; want 2 and nothing", args, code, stdout)
		}
	}
}
