package wasmtools

import (
	"fmt"

	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/text"
)

// CheckName reports what is wrong with a tool's name, or nil.
func CheckName(s string) error { return naming.CheckName(s) }

// Check reports whether a table can hold the tool: its namespace and name are valid, its path is not the
// service's own, its operation id is short enough, what clients show of it is in order, and it can be called.
func (t *Tool) Check() error {
	if err := naming.CheckNamespace(t.Namespace); err != nil {
		return err
	}
	if err := CheckName(t.Name); err != nil {
		return err
	}
	path := t.Path()
	if at, _ := naming.Reserved(path); at {
		return fmt.Errorf("path %s is reserved for the service: choose another namespace or name", path)
	}
	if id := t.OperationID(); len(id) > naming.Max {
		return fmt.Errorf("operation id %q of %s has %d characters; at most %d are allowed: shorten the namespace or the name", text.Short(id), text.Short(path), len(id), naming.Max)
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
	case first.Path() == second.Path() && first.Source != "" && first.Source == second.Source:
		return fmt.Errorf("path %s is taken: %s has it twice, or is served twice, as when one source's directory is inside another's: leave one out", first.Path(), first.Source)
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
