package examples_test

import (
	"encoding/json"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestManifestsOfDocs parses the manifests of docs/abi.md.
func TestManifestsOfDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		if !json.Valid(block[1]) {
			t.Errorf("docs/abi.md: this is not valid JSON:\n%s", block[1])
		}
		if strings.Contains(string(block[1]), `"abi"`) {
			found++
			if _, err := toolfile.ParseManifest(block[1]); err != nil {
				t.Errorf("docs/abi.md: %v in the manifest\n%s", err, block[1])
			}
		}
	}
	if found != 2 {
		t.Errorf("docs/abi.md has %d manifests, want 2", found)
	}
}
