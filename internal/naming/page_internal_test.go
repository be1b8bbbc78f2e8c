package naming

import (
	"os"
	"strings"
	"testing"
)

// TestPage compares the reserved paths with those that docs/abi.md lists for authors.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	own := "`" + strings.Join(reserved, "`, `") + "`, and all below `" + strings.Join(reservedTrees[:len(reservedTrees)-1], "`, `") + "` and `" + reservedTrees[len(reservedTrees)-1] + "`"
	if !strings.Contains(string(page), own) {
		t.Errorf("docs/abi.md doesn't list the server's own paths as this package does: %s", own)
	}
}
