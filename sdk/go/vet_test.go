package toolsrv_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestVet: go vet checks the format and the arguments of log lines, as it does for package fmt.
func TestVet(t *testing.T) {
	t.Parallel()
	const file = "testdata/vet/main.go"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "vet", "./testdata/vet").CombinedOutput()
	if err == nil {
		t.Errorf("go vet finds nothing wrong in %s", file)
	}
	wanted := regexp.MustCompile(`// want: (.*)`)
	found := 0
	for i, line := range strings.Split(string(text), "\n") {
		told := regexp.MustCompile(fmt.Sprintf(`main\.go:%d:\d+: .*`, i+1)).Find(out)
		switch want := wanted.FindStringSubmatch(line); {
		case want == nil && told != nil:
			t.Errorf("%s", told)
		case want != nil && !bytes.Contains(told, []byte(want[1])):
			t.Errorf("line %d: got %q, want %q in it; all of it:\n%s", i+1, told, want[1], out)
		case want != nil:
			found++
		}
	}
	if found < 5 {
		t.Errorf("found %d of the slips in %s", found, file)
	}
}
