// Package reachtest reads the URLs of testdata/urls.txt, for the tests of all packages that use package reach.
package reachtest

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

//go:embed urls.txt
var urls string

// A Case is a URL, and the outcome of a request to it.
type Case struct {
	// Where is the line in the file.
	Where string
	// Grant is the pattern that is granted, and also the one that is needed.
	Grant string
	// Outcome is allowed, denied, special or invalid.
	Outcome, URL string
}

// URLs returns all cases.
func URLs(t testing.TB) []Case {
	t.Helper()
	grants := map[string]string{}
	var cases []Case
	for number, line := range strings.Split(urls, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if words[0] == "grant" {
			grants[words[1]] = words[2]
			continue
		}
		url, err := strconv.Unquote(line[strings.Index(line, `"`):])
		if err != nil || grants[words[1]] == "" {
			t.Fatalf("urls.txt:%d: %s: %v", number+1, line, err)
		}
		cases = append(cases, Case{fmt.Sprintf("urls.txt:%d", number+1), grants[words[1]], words[0], url})
	}
	return cases
}
