package builtin

import (
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// CheckOwn returns an error if one of a program's own capabilities is incomplete or could be confused with another one.
func CheckOwn(own []capability.Kind) error {
	names, modules, keys := map[string]bool{}, map[string]string{}, map[string]string{"match": "every capability"}
	take := func(k *capability.Kind) error {
		if k.Module == "" || k.New == nil || k.Open == nil {
			return fmt.Errorf("the capability %q lacks its Module, New or Open", k.Name)
		}
		if names[k.Name] {
			return fmt.Errorf("two capabilities have the name %q", k.Name)
		}
		if other := modules[k.Module]; other != "" {
			return fmt.Errorf("the capabilities %s and %s share the import module %s", other, k.Name, k.Module)
		}
		if k.Set != nil && k.Set.Module != k.Module {
			return fmt.Errorf("the functions of the capability %s are in the import module %s, but its grants are for %s", k.Name, k.Set.Module, k.Module)
		}
		names[k.Name], modules[k.Module] = true, k.Name
		for key := range k.New().Keys("") {
			if other := keys[key]; other != "" {
				return fmt.Errorf("the key %s of a grant belongs to %s and to %s", key, other, k.Name)
			}
			keys[key] = k.Name
		}
		return nil
	}
	every := Kinds()
	for i := range every {
		if err := take(&every[i]); err != nil {
			return err
		}
	}
	for i := range own {
		k := &own[i]
		if err := take(k); err != nil {
			return err
		}
		switch name, ok := strings.CutPrefix(k.Name, manifest.ForeignNeed); {
		case !ok:
			return fmt.Errorf("the name of the program's capability %q must begin with %s", k.Name, manifest.ForeignNeed)
		case name == "" || wasmtools.CheckName(k.Name) != nil:
			return fmt.Errorf("%q is not a valid name for a capability", k.Name)
		}
	}
	return nil
}
