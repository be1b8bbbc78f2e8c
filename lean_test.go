package toolsrv_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLean checks that the program with which make run begins does not contain the libraries that make its build slow.
func TestLean(t *testing.T) {
	t.Parallel()
	without := []string{"github.com/sigstore/", "go.opentelemetry.io/", "google.golang.org/grpc"}
	for tags, want := range map[string]int{"grpcnotrace": len(without), "grpcnotrace,lean": 0} {
		out, err := exec.Command("go", "list", "-deps", "-tags="+tags, "./cmd/toolsrv").Output()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, library := range without {
			if strings.Contains(string(out), "\n"+library) {
				found = append(found, library)
			}
		}
		if len(found) != want {
			t.Errorf("built with the tags %s, it has %q of %q", tags, found, without)
		}
	}
}
