package wasmtools

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// MaxName is the largest length, in bytes, of a name and of an operation id.
const MaxName = 64

var name = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// reserved paths are the service's own. Those of reservedTrees are so with all that is below them.
var (
	reserved      = []string{"/tools", "/openapi.json", "/docs", "/redoc", "/healthz", "/readyz", "/metrics", "/events"}
	reservedTrees = []string{"/admin", "/console", "/mcp"}
)

// CheckNamespace reports what is wrong with a namespace, or nil. The empty namespace is the top level.
func CheckNamespace(namespace string) error {
	if namespace == "" {
		return nil
	}
	for part := range strings.SplitSeq(namespace, "/") {
		if !name.MatchString(part) {
			return fmt.Errorf("namespace %q: %w", text.Short(namespace), badName(part))
		}
	}
	return nil
}

// CheckName reports what is wrong with a tool's name, or nil.
func CheckName(s string) error {
	if !name.MatchString(s) {
		return badName(s)
	}
	return nil
}

func badName(s string) error {
	return fmt.Errorf("%q is not a valid name: use 1 to %d of the characters A-Z a-z 0-9 _ -", text.Short(s), MaxName)
}

// Reserved reports whether a path is one that no tool can have, because it is the service's own or a part of it is not a valid name.
// below says that this holds for all paths below it, too. Doors are mounted at such paths, so that they hide no tool.
func Reserved(path string) (at, below bool) {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if !name.MatchString(part) {
			return true, true
		}
	}
	if slices.ContainsFunc(reservedTrees, func(tree string) bool { return covers(tree, path) }) {
		return true, true
	}
	return slices.Contains(reserved, path), false
}

// Check reports whether a table can hold the tool: its namespace and name are valid, its path is not the
// service's own, its operation id is short enough, what clients show of it is in order, and it can be called.
func (t *Tool) Check() error {
	if err := CheckNamespace(t.Namespace); err != nil {
		return err
	}
	if err := CheckName(t.Name); err != nil {
		return err
	}
	path := t.Path()
	if at, _ := Reserved(path); at {
		return fmt.Errorf("path %s is the service's own: choose another namespace or name", path)
	}
	if id := t.OperationID(); len(id) > MaxName {
		return fmt.Errorf("operation id %q of %s has %d characters; at most %d are allowed: shorten the namespace or the name", text.Short(id), text.Short(path), len(id), MaxName)
	}
	if err := t.CheckAppearance(); err != nil {
		return fmt.Errorf("tool %s: %w", path, err)
	}
	if t.Parameters == nil {
		return fmt.Errorf("tool %s has no Parameters: compile its schema with schema.Compile", path)
	}
	if t.Caller == nil {
		return fmt.Errorf("tool %s has no Caller: set one, such as a wasmtools.CallerFunc", path)
	}
	return nil
}

// Conflict returns the error of a second tool that cannot be served beside first, or nil where it can.
func Conflict(first, second *Tool) error {
	switch {
	case first.Path() == second.Path():
		return fmt.Errorf("path %s is taken: %s and %s both declare it; rename one", first.Path(), first.origin(), second.origin())
	case first.OperationID() == second.OperationID():
		return fmt.Errorf("operation id %q is taken: %s of %s and %s of %s both have it; rename one",
			first.OperationID(), first.Path(), first.origin(), second.Path(), second.origin())
	}
	return nil
}

func (t *Tool) origin() string {
	if t.Source == "" {
		return "the program"
	}
	return t.Source
}
