// Package naming defines the valid names of tools, namespaces and other things, and the paths that are the service's own.
package naming

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Max is the largest length, in bytes, of a name and of an operation id.
const Max = 64

// name matches names of any length: with a bound, the expression would be much larger, and it is compiled at each start of the program.
var name = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// isName reports whether s is a valid name of a tool, or a valid part of a namespace.
func isName(s string) bool { return len(s) <= Max && name.MatchString(s) }

// reserved are paths of the service's own. All paths below a path in reservedTrees are the service's own, too.
var (
	reserved      = []string{"/tools", "/openapi.json", "/docs", "/redoc", "/healthz", "/readyz", "/metrics", "/events"}
	reservedTrees = []string{"/admin", "/console", "/mcp", "/toolsrv"}
)

// CheckNamespace reports what is wrong with a namespace, or nil. The empty namespace is the top level.
func CheckNamespace(namespace string) error {
	if namespace == "" {
		return nil
	}
	for part := range strings.SplitSeq(namespace, "/") {
		if !isName(part) {
			return fmt.Errorf("namespace %q: %w", text.Short(namespace), badName(part))
		}
	}
	return nil
}

// CheckName reports what is wrong with a tool's name, or nil.
func CheckName(s string) error {
	if !isName(s) {
		return badName(s)
	}
	return nil
}

func badName(s string) error {
	return fmt.Errorf("%q is not a valid name: use 1 to %d of the characters A-Z a-z 0-9 _ -", text.Short(s), Max)
}

// Reserved reports whether no tool can have a path, because it is the service's own or has a part that is not a valid name. below
// reports whether that holds for all paths below it, too. Doors are mounted at reserved paths, so that they hide no tool.
func Reserved(path string) (at, below bool) {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if !isName(part) {
			return true, true
		}
	}
	if slices.ContainsFunc(reservedTrees, func(tree string) bool { return strings.HasPrefix(path+"/", tree+"/") }) {
		return true, true
	}
	return slices.Contains(reserved, path), false
}
