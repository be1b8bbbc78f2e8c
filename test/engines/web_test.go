package engines_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

const webTests = "../../sdk/js/engine/test"

// asTool and asProgram are the scripts that run the cases of a file in the engine and in Node.
const (
	asTool    = "import { tool } from 'toolsrv';\nexport const test = tool({ description: 'Runs the cases.', run: runCases });\n"
	asProgram = "console.log(JSON.stringify(await runCases()));\n"
)

// TestWeb compares the engine's web APIs with Node's: the same cases must have the same results. Node's results are kept beside the cases; -update
// writes them.
func TestWeb(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(webTests + "/*.js")
	if err != nil || len(files) < 3 {
		t.Fatalf("the cases are %q, %v", files, err)
	}
	h := newHost(t)
	runner := string(testkit.Read(t, webTests, "run.js"))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".js")
		if name == "run" {
			continue
		}
		source := string(testkit.Read(t, file)) + runner
		kept := filepath.Join(webTests, name+".json")
		t.Run(name+" in Node", func(t *testing.T) {
			t.Parallel()
			got := inNode(t, source+asProgram)
			if *update {
				if err := os.WriteFile(kept, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			compare(t, got, testkit.Read(t, kept))
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got json.RawMessage
			if err := h.javascript(t, name+".js", source+asTool).call(t, &got); err != nil {
				t.Fatal(err)
			}
			compare(t, got, testkit.Read(t, kept))
		})
	}
}

// inNode runs a program in Node, and returns what it prints, indented.
func inNode(t *testing.T, source string) []byte {
	t.Helper()
	testkit.NeedBuild(t, "node")
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
	cmd.Env = append(os.Environ(), "TZ=UTC", "NO_COLOR=1")
	cmd.Stdin = strings.NewReader(source)
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, printed, "", " "); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// compare compares the results of cases, one by one.
func compare(t *testing.T, got, want []byte) {
	t.Helper()
	var results [2]map[string]any
	for i, text := range [][]byte{got, want} {
		if err := json.Unmarshal(text, &results[i]); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range results[1] {
		if got := results[0][name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, line(got), line(want))
		}
	}
	if len(results[0]) != len(results[1]) {
		t.Errorf("%d cases, want %d: run go test ./test/engines -update", len(results[0]), len(results[1]))
	}
}

func line(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}
