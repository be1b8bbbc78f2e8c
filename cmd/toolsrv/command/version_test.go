package command_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	code, text, _ := run("version")
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{"toolsrv ", "revision ", runtime.Version(), "wazero ", runtime.GOOS + "/" + runtime.GOARCH, "engines ", "abi ", "mcp "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}

	if code, flag, _ := run("--version"); code != 0 || flag != text {
		t.Errorf("--version: got %d %q, want %q", code, flag, text)
	}

	code, text, _ = run("version", "--json")
	if code != 0 {
		t.Errorf("--json: exit code %d, want 0", code)
	}
	if got := shapeOf(t, text); got != versionShape {
		t.Errorf("--json: the members are\n%s\nwant\n%s\nThey are stable: none may go, or mean something else.", got, versionShape)
	}
	var got struct {
		ABI     int
		MCP     []string
		Engines []engine.About
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	list, err := engine.Carried().List()
	if err != nil || got.ABI != manifest.ABI || !slices.Contains(got.MCP, "2026-07-28") || !slices.Equal(got.Engines, list) {
		t.Errorf("--json: %s (%v)", text, err)
	}
}

// versionShape has all members of `toolsrv version --json`, with the zero value of their types.
const versionShape = `{"version":"","revision":"","modified":false,"go":"","wazero":"","os":"","arch":"",` +
	`"engines":[{"name":"","version":"","revision":"","capacity":0},{"name":"","version":"","revision":"","capacity":0}],"abi":0,"mcp":["","",""]}`

// shapeOf returns JSON with each value replaced by the zero value of its type.
func shapeOf(t *testing.T, text string) string {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	shape := regexp.MustCompile(`("(?:[^"\\]|\\.)*")(:?)`).ReplaceAllStringFunc(compact.String(), func(s string) string {
		if strings.HasSuffix(s, ":") {
			return s
		}
		return `""`
	})
	shape = regexp.MustCompile(`\d+`).ReplaceAllString(shape, "0")
	return strings.ReplaceAll(shape, "true", "false")
}

func TestVersionUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version", "now"}, {"version", "--yaml"}} {
		if code, stdout, _ := run(args...); code != 2 || stdout != "" {
			t.Errorf("toolsrv %q: exit code %d, standard output %q; want 2 and nothing", args, code, stdout)
		}
	}
}
