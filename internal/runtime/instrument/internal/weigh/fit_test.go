package weigh_test

import (
	"os"
	"regexp"
	"testing"
)

// fitted is the version of wazero whose compiler the figures in weigh.go and frame.go were fitted to.
const fitted = "v1.12.0"

// TestFit fails if go.mod has a version of wazero other than the one that was measured. These figures decide which modules are refused if no
// separate process bounds compiling, and what a recursion is charged. To fit them anew: run make attack-compile; if a shape takes more than its
// bound, or more than twice what is predicted, correct the figure of its product; then write the version here.
// Proves: Compiling is bounded
func TestFit(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s*(?:require )?github\.com/tetratelabs/wazero (\S+)`).FindSubmatch(module)
	if found == nil || string(found[1]) != fitted {
		t.Errorf("go.mod has wazero %s, and the figures were fitted to %s", found, fitted)
	}
	if regexp.MustCompile(`(?m)tetratelabs/wazero.*=>`).Match(module) {
		t.Errorf("go.mod replaces wazero %s, which the figures were fitted to", fitted)
	}
}
