package catalog

import (
	"context"
	"fmt"
	"path"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A module is one version of one file: a program, and the tools made of it. The keeper's goroutine owns it.
type module struct {
	program   *sandbox.Program
	compiled  bool
	source    string // the file, for people
	namespace string
	manifest  *wasmtools.Manifest
	schemas   []schemas         // of each tool of the manifest
	limits    []sandbox.Limits  // of each tool
	tools     []*wasmtools.Tool // in the order of the manifest
}

// schemas are those of one tool; result is nil where there is none.
type schemas struct{ parameters, result wasmtools.Schema }

// embedded returns the manifest in a module's custom section, or nil where the module has to be run to be described.
func embedded(content []byte, program *sandbox.Program) (*wasmtools.Manifest, error) {
	binary, err := wasmbin.Parse(content)
	if err != nil {
		return nil, err
	}
	text, ok, err := binary.Custom(wasmtools.ManifestSection)
	if err != nil {
		return nil, err
	}
	if !ok {
		if program.Describes() {
			return nil, nil
		}
		return nil, fmt.Errorf("no custom section %s and no export toolsrv_describe: embed the manifest with `toolsrv pack`", wasmtools.ManifestSection)
	}
	manifest, err := wasmtools.ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("custom section %s: %w", wasmtools.ManifestSection, err)
	}
	return manifest, nil
}

// describe runs a module to learn its manifest.
func describe(ctx context.Context, program *sandbox.Program) (*wasmtools.Manifest, error) {
	text, err := program.Describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("run toolsrv_describe: %w", err)
	}
	manifest, err := wasmtools.ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("result of toolsrv_describe: %w", err)
	}
	return manifest, nil
}

// newModule makes a module of a program and its manifest, and compiles the schemas. file is the path in the directory,
// with slashes. There are no tools before build.
func newModule(program *sandbox.Program, manifest *wasmtools.Manifest, file, source string) (*module, error) {
	m := &module{program: program, source: source, manifest: manifest, namespace: manifest.Namespace}
	if program.Command() && len(manifest.Tools) != 1 {
		return nil, fmt.Errorf("the manifest has %d tools, but a plain WASI program is one tool: export toolsrv_call, or make a file of each", len(manifest.Tools))
	}
	if folder := path.Dir(file); m.namespace == "" && folder != "." {
		m.namespace = folder
		if err := wasmtools.CheckNamespace(folder); err != nil {
			return nil, fmt.Errorf("its folder is its namespace: %w, or give the manifest a \"namespace\"", err)
		}
	}
	for _, t := range manifest.Tools {
		s, err := compile(t)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		m.schemas = append(m.schemas, s)
	}
	return m, nil
}

// compile compiles the schemas of one tool.
func compile(t wasmtools.ManifestTool) (schemas, error) {
	parameters, err := schema.CompileParameters(t.Parameters)
	if err != nil {
		return schemas{}, fmt.Errorf("parameters: %w", err)
	}
	if t.Result == nil {
		return schemas{parameters: parameters}, nil
	}
	result, err := schema.Compile(t.Result)
	if err != nil {
		return schemas{}, fmt.Errorf("result: %w", err)
	}
	return schemas{parameters, result}, nil
}

// build makes the module's tools, with the limits of their paths. A tool whose limits are the same as before stays, with
// the calls that run and wait in it.
func (m *module) build(limits func(path string) sandbox.Limits) error {
	tools := make([]*wasmtools.Tool, len(m.manifest.Tools))
	set := make([]sandbox.Limits, len(tools))
	for i, declared := range m.manifest.Tools {
		t := &wasmtools.Tool{
			Namespace:   m.namespace,
			Name:        declared.Name,
			Description: declared.Description,
			Version:     m.manifest.Version,
			Parameters:  m.schemas[i].parameters,
			Result:      m.schemas[i].result,
			Examples:    declared.Examples,
			Digest:      m.program.Digest(),
			Source:      m.source,
		}
		if limits != nil {
			set[i] = limits(t.Path())
		}
		if m.tools != nil && m.limits[i] == set[i] {
			tools[i] = m.tools[i]
			continue
		}
		runs := m.program.Tool(t.Path(), int32(i), set[i])
		t.MaxInput = runs.Limits().Input
		t.Caller = caller{runs}
		if err := t.Check(); err != nil {
			return err
		}
		tools[i] = t
	}
	m.tools, m.limits = tools, set
	return nil
}

// close gives up the program. Calls of its tools that run, or that begin by an old generation, are not disturbed.
func (m *module) close() {
	m.program.Close() // documented not to fail
}
