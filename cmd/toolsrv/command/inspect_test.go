package command_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name    string
		content []byte
		args    []string
		want    []string // regular expressions
	}{
		{"with a manifest", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifestOf("shop", "echo", "refuse")), nil, []string{
			`size +\d+\.\d KiB \(\d+ bytes\)\n`, `digest +sha256 [0-9a-f]{64}\n`, `manifest +embedded\n`, `namespace +shop\n`, `version +1\.2\.3\n`, `sdk +wat/1\n`,
			`tool +/shop/echo +Does echo\.\n`, `tool +/shop/refuse `, `reset +in place\n`, `features +none beyond`, `memory +128\.0 KiB\n`, `table +10 elements, up to 10 elements\n`,
			`import +toolsrv_v1 input_size +function \(\) -> \(i32\)\n`, `export +toolsrv_call +function \(i32\) -> \(i32\)\n`, `section +code +\d+ bytes\n`, `section +custom toolsrv.manifest `}},
		{"without", testkit.Fixture(t, "e2e/guest"), nil, []string{"manifest +none: embed one with `toolsrv pack`\n"}},
		{"that would tell", testkit.Fixture(t, "catalog/described"), nil, []string{`manifest +not embedded, but toolsrv_describe returns one: --describe runs it`}},
		{"that tells", testkit.Fixture(t, "catalog/described"), []string{"--describe"}, []string{`manifest +not embedded, but returned by toolsrv_describe\n`, `tool +/told +Tells of itself\.\n`}},
		{"with an interpreter", sandboxtest.WithManifest(t, testkit.Fixture(t, "script/toy"), strings.Replace(manifestOf("shop", "echo"), `"abi"`,
			`"engine":"toy 1.0 (0123abcd)","abi"`, 1)), nil, []string{`engine +toy 1\.0 \(0123abcd\)\n`, `section +custom toolsrv\.engine `}},
		{"with a title", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), strings.Replace(manifestOf("shop", "echo"), `"name"`,
			`"title":"Echo \u200fit","annotations":{"readOnly":true,"openWorld":false},"icons":[{"src":"https://shop.example/echo.png"}],"name"`, 1)), nil, []string{
			`tool +/shop/echo +Does echo\.\ntitle +/shop/echo +Echo \\u200fit\nannotations +/shop/echo +readOnly: true, openWorld: false\nicon +/shop/echo +https://shop.example/echo.png\n`}},
		{"with a broken manifest", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), `{"abi":9}`), []string{"--describe"}, []string{`manifest +broken: abi is 9`}},
		{"whose instances are not reset", testkit.Fixture(t, "wat/good/fresh"), nil, []string{`reset +with a new instance for each call: \S+`}},
		{"that no server accepts", testkit.Fixture(t, "wat/refused/memory_shared"), nil, []string{`memory +\d`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"inspect", testkit.Put(t, t.TempDir(), "x.wasm", c.content)}, c.args...)...)
			if code != 0 || stderr != "" {
				t.Errorf("exit code %d, standard error %q; want 0 and nothing", code, stderr)
			}
			for _, want := range c.want {
				if !regexp.MustCompile(want).MatchString(stdout) {
					t.Errorf("no %s in\n%s", want, stdout)
				}
			}
		})
	}

	code, stdout, _ := run("inspect", "--json", testkit.Put(t, dir, "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifestOf("shop", "echo"))))
	var r toolfile.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Manifest.Namespace != "shop" || len(r.Sections) == 0 {
		t.Errorf("--json: exit code %d, %v, %s", code, err, stdout)
	}
	for _, c := range []struct {
		name, path, says string
	}{
		{"no file", dir + "/nowhere.wasm", "nowhere.wasm"},
		{"no module", testkit.Put(t, dir, "text.wasm", []byte("text")), "text.wasm: wasm: "},
		{"describes for ever", "--describe=true " + testkit.Put(t, dir, "spin.wasm", testkit.Fixture(t, "wat/hostile/describe_spin")), "run toolsrv_describe: "},
	} {
		if code, stdout, stderr := run(append([]string{"inspect"}, strings.Fields(c.path)...)...); code != 1 || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q; want 1, nothing, and %q", c.name, code, stdout, stderr, c.says)
		}
	}
}

// TestInspectHostileNames has names that could take over a terminal, or forge lines of the table.
func TestInspectHostileNames(t *testing.T) {
	t.Parallel()
	name := "\x1b]0;owned\x07\nmanifest\tembedded \u202egnp.\u009b31m"
	content := append(testkit.Fixture(t, "catalog/answer"), 0, byte(len(name)+1), byte(len(name)))
	content = append(content, name...)
	code, stdout, _ := run("inspect", testkit.Put(t, t.TempDir(), "x.wasm", content))
	if code != 0 || strings.ContainsAny(stdout, "\x1b\x07\u202e\u009b") || strings.Contains(stdout, "\nmanifest  embedded") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}
