// Package toolsrv makes tools of Go functions, for the server of the same name.
//
// A tool is a function from a struct of arguments to a result and an error. Its JSON Schema is derived from the two
// types ([Func] says how), and [Export] makes the tools of a program callable:
//
//	package main
//
//	import toolsrv "github.com/toolsrv/toolsrv/sdk/go"
//
//	type terms struct {
//		A float64 `json:"a" description:"The first term."`
//		B float64 `json:"b"`
//	}
//
//	var module = toolsrv.Export(toolsrv.Module{Namespace: "math", Tools: []toolsrv.Tool{
//		toolsrv.Func("add", "Add two numbers.", func(c *toolsrv.Call, in terms) (float64, error) { return in.A + in.B, nil }),
//	}})
//
//	func main() {}
//
// It is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o math.wasm .
//
// and tested natively with go test and package toolsrvtest. Package-level variables and init functions run once, before
// the snapshot that every call starts from; main never runs. What a call changes is gone when it returns. Take
// randomness and the time in the function, not before: what was read at initialisation is the same in every call. So are
// the numbers of math/rand's top-level functions, which are seeded then: use crypto/rand or package toolsrand.
package toolsrv

import (
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/sdk/go/internal/typed"
)

// Version is the version of this SDK. Manifests name it.
const Version = "0.1.0"

// abi is the version of the contract with the host that guest.go speaks.
const abi = 1

// A Module is a set of tools in one .wasm file.
type Module struct {
	// Namespace is the path before the tools' names: one or more names joined by "/", or empty, and then the folder of
	// the file in the server's tools directory decides.
	Namespace string
	// Version is the author's version of the module, or empty. It is shown to clients and not interpreted.
	Version string
	// Needs are what all of its tools need, and its settings.
	Needs Needs
	// Tools are the tools, at least one. Their names differ.
	Tools []Tool
}

// Export makes m the module of the program and returns it. Call it once, in the initialisation of package main:
// assign it to a package-level variable. On the host (in tests) it only returns m, so that a test can
// use the variable. Whether m is right is checked by [Module.Manifest], not here.
func Export(m Module) Module {
	export(m)
	return m
}

// manifest is the manifest in its written form.
type manifest struct {
	ABI       int            `json:"abi"`
	Namespace string         `json:"namespace,omitempty"`
	Version   string         `json:"version,omitempty"`
	SDK       string         `json:"sdk"`
	Needs     *manifestNeeds `json:"needs,omitempty"`
	Tools     []manifestTool `json:"tools"`
}

// Manifest returns the module's manifest, the JSON that the server reads. It fails where the server would refuse it,
// or if a type of a tool can't be described, and names the tool and the field.
func (m Module) Manifest() ([]byte, error) {
	if err := checkNamespace(m.Namespace); err != nil {
		return nil, err
	}
	if len(m.Tools) == 0 {
		return nil, errors.New("the module has no tools: pass a Module with Tools to toolsrv.Export")
	}
	out := manifest{ABI: abi, Namespace: m.Namespace, Version: m.Version, SDK: "go/" + Version}
	var err error
	if out.Needs, err = m.Needs.describe(); err != nil {
		return nil, fmt.Errorf("the module: %w", err)
	}
	names := make(map[string]bool, len(m.Tools))
	for _, t := range m.Tools {
		if names[t.name] {
			return nil, fmt.Errorf("two tools are called %q: rename one", t.name)
		}
		names[t.name] = true
		described, err := t.describe()
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", t.name, err)
		}
		out.Tools = append(out.Tools, described)
	}
	return typed.Encode(out)
}

// Call runs the tool of that name as the host would once it has validated the arguments, a JSON object. It returns the
// result, JSON that the caller owns, or the tool's error, which [AsError] turns into what clients see.
func (m Module) Call(c *Call, tool string, arguments []byte) ([]byte, error) {
	for _, t := range m.Tools {
		if t.name == tool {
			return t.run(c, arguments)
		}
	}
	return nil, fmt.Errorf("the module has no tool %q", tool)
}

// checkNamespace reports what is wrong with a namespace, or nil.
func checkNamespace(namespace string) error {
	for start, i := 0, 0; namespace != "" && i <= len(namespace); i++ {
		if i < len(namespace) && namespace[i] != '/' {
			continue
		}
		if err := checkName(namespace[start:i]); err != nil {
			return fmt.Errorf("namespace %q: %w", namespace, err)
		}
		start = i + 1
	}
	return nil
}

// checkName reports what is wrong with a name, or nil.
func checkName(name string) error {
	ok := len(name) >= 1 && len(name) <= 64
	for i := 0; i < len(name) && ok; i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	if !ok {
		return fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 _ -", name)
	}
	return nil
}
