// Package toolfile makes tools of a .wasm file: it reads the manifest or runs the module to get it, compiles the schemas, and gives each tool its
// limits. It also embeds a manifest into a file, reports what is in a file without running it, and
// lints schemas for clients.
//
// The catalog and the author's commands share it, so that a server accepts what a command accepts. Files are not trusted: their content is checked
// before anything is allocated or run because of it.
package toolfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A Place says where a file lies and how it may be loaded.
type Place struct {
	// Folder is the file's folder in its source, with slashes, or empty at the top. It is the namespace if the manifest has
	// none.
	Folder string
	// Prefix is put before the namespace, wherever that comes from. It may be empty.
	Prefix string
	// Source names the file in messages.
	Source string
	// Replaces is whether the file replaces one that is served.
	Replaces bool
	// Most is how many bytes of memory loading the file may take; 0 means any number.
	Most int64
}

// A Module is one version of a file: a program, and the tools made of it. It is not safe for concurrent use; its tools are.
type Module struct {
	runs       *sandbox.Engine // the program
	program    *sandbox.Program
	place      Place
	size       int64  // size of the content or, for a script, of the bundle
	said       []byte // output of toolsrv_describe, kept if reading it may take more memory than the place allows
	engine     string // the interpreter in it, or ""
	namespace  string
	kept       int64              // bytes that were reserved because of the manifest
	manifest   *manifest.Manifest // nil: the module must be run to be described
	describes  bool               // the manifest is the module's own description, from this run or an earlier one
	schemas    []pair             // the schemas of each tool of the manifest
	paths      []string           // the same
	needs      []wasmtools.Needs  // the same
	tools      []*wasmtools.Tool  // the tools, in the order of the manifest
	allowances []allowance        // what each tool was allowed
	configured programs           // the programs with settings, for the tools that have some
}

// A pair is the schemas of a tool; result is nil if there is none.
type pair struct{ parameters, result *schemas.Schema }

// Load checks a file's content and reads its manifest, without compiling or running anything. If the file has no manifest section, its manifest is
// known only if an equal file was described before. Nothing of content is kept, unless Load fails. Close frees the Module.
func Load(engine *sandbox.Engine, content []byte, place Place) (*Module, error) {
	if err := place.allows(loadCopies * int64(len(content))); err != nil {
		return nil, err
	}
	binary, err := wasmbin.Parse(content)
	if err != nil {
		return nil, err
	}
	return load(engine, wasmbin.Made{Module: binary}, int64(len(content)), place)
}

// LoadMade is Load for a module that was made from a script. The bundle must not be changed from now on. Only the bundle takes memory, since the
// engine is shared.
func LoadMade(engine *sandbox.Engine, made wasmbin.Made, place Place) (*Module, error) {
	size := int64(len(made.Bundle))
	if made.Bundle == nil {
		size = int64(made.Size())
	}
	if err := place.allows(loadCopies * size); err != nil {
		return nil, err
	}
	return load(engine, made, size, place)
}

// load loads a module whose own part has size bytes.
func load(engine *sandbox.Engine, made wasmbin.Made, size int64, place Place) (*Module, error) {
	if text, err := embedded(made.Module); err == nil { // otherwise readManifest returns the error
		if err := place.allows(loadCopies*size + manifestNeeds(text)); err != nil {
			return nil, err
		}
	}
	program, err := programOf(engine, made, place)
	if err != nil {
		return nil, err
	}
	m := &Module{runs: engine, program: program, place: place, size: size}
	if m.engine, err = engineOf(made.Module); err == nil {
		err = m.readManifest(made.Module)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// readManifest reads the manifest from the custom section, if there is one.
func (m *Module) readManifest(binary *wasmbin.Module) error {
	text, err := embedded(binary)
	if err != nil {
		return err
	}
	if text == nil {
		m.describes = true
		if text := m.program.Described(); text != nil {
			return m.take(text)
		}
		if m.program.Describes() {
			return nil
		}
		return fmt.Errorf("no custom section %s and no export toolsrv_describe: embed the manifest with `toolsrv pack`", manifest.Section)
	}
	read, err := ParseManifest(text)
	if err != nil {
		return fmt.Errorf("custom section %s: %w", manifest.Section, err)
	}
	return m.setManifest(read, len(text))
}

// embedded returns the text of the manifest in a module's custom section, or nil if there is none. It shares memory
// with it.
func embedded(binary *wasmbin.Module) ([]byte, error) {
	text, ok, err := binary.Custom(manifest.Section)
	if ok && text == nil {
		text = []byte{}
	}
	return text, err
}

// setManifest checks the manifest, whose text has size bytes, and compiles its schemas.
func (m *Module) setManifest(said *manifest.Manifest, size int) error {
	if m.program.Command() && len(said.Tools) != 1 {
		return fmt.Errorf("the manifest has %d tools, but a plain WASI program can be only one tool: export toolsrv_call, or make a file for each", len(said.Tools))
	}
	m.namespace = said.Namespace
	if m.namespace == "" {
		m.namespace = m.place.Folder
		if err := naming.CheckNamespace(m.namespace); err != nil {
			return fmt.Errorf("its folder is its namespace: %w, or give the manifest a \"namespace\"", err)
		}
	}
	if m.place.Prefix != "" {
		m.namespace = strings.TrimSuffix(m.place.Prefix+"/"+m.namespace, "/")
	}
	if err := m.keep(int64(size) * documentCopies); err != nil {
		return err
	}
	budget := schemas.NewBudget()
	for _, t := range said.Tools {
		s, err := compile(t, budget)
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		if err := m.keep(s.size()); err != nil { // checked here, before the next schema takes as much memory
			return err
		}
		m.schemas = append(m.schemas, s)
	}
	for _, t := range said.Tools {
		m.paths = append(m.paths, (&wasmtools.Tool{Namespace: m.namespace, Name: t.Name}).Path())
		m.needs = append(m.needs, manifest.Joined(said.Needs, t.Needs))
	}
	m.manifest = said
	return nil
}

// documentCopies is how many times the text of a manifest is kept, in addition to the written and compiled schemas: in the lists that clients
// request.
const documentCopies = 6

// keep counts the memory that is kept for a manifest.
func (m *Module) keep(bytes int64) error {
	if m.kept += bytes; m.program.Keep(bytes, m.place.Replaces) {
		return nil
	}
	return &RoomError{Needs: m.kept, Limit: m.runs.ManifestUse().Limit}
}

// A RoomError means that a file's manifest needs more memory than the manifests of all other files leave.
type RoomError struct {
	Needs int64 // how many bytes the manifest needs, at least
	Limit int64 // how many bytes the manifests of all files may take together
}

// Error says how much memory is missing, and what to do.
func (e *RoomError) Error() string {
	return fmt.Sprintf("the schemas and texts of its tools need %s of memory or more, and with those of all other tools that exceeds the limit of %s: shorten them, remove other tools, or raise server.memory",
		text.Size(e.Needs), text.Size(e.Limit))
}

// size returns how many bytes of memory the schemas take.
func (p pair) size() int64 {
	size := p.parameters.Size()
	if p.result != nil {
		size += p.result.Size()
	}
	return size
}

// compile compiles the schemas of one tool.
func compile(t manifest.Tool, budget *schemas.Budget) (pair, error) {
	parameters, err := budget.CompileParameters(t.Parameters)
	if err != nil {
		return pair{}, fmt.Errorf("parameters: %w", err)
	}
	if t.Result == nil {
		return pair{parameters: parameters}, nil
	}
	result, err := budget.Compile(t.Result)
	if err != nil {
		return pair{}, fmt.Errorf("result: %w", err)
	}
	return pair{parameters, result}, nil
}

// Digest returns the SHA-256 of the content in lower-case hexadecimal.
func (m *Module) Digest() string { return m.program.Digest() }

// Size returns the size of the content in bytes; for a script, the size of its bundle.
func (m *Module) Size() int64 { return m.size }

// Manifest returns the manifest, which must not be changed. It is nil before Describe if none is embedded.
func (m *Module) Manifest() *manifest.Manifest { return m.manifest }

// Describes reports whether the manifest comes from the module's own description, not from a section of the file. Whether it has been run does not matter.
func (m *Module) Describes() bool { return m.describes }

// Paths returns the paths of the tools in the manifest, whether or not they can be built.
func (m *Module) Paths() []string {
	return slices.Clone(m.paths)
}

// Compile waits until the module is compiled. If ctx ends first, the compilation continues.
func (m *Module) Compile(ctx context.Context) error { return m.program.Compile(ctx) }

// Describe runs the module to get its manifest, unless that is embedded. If a script is to blame, the error is a *ScriptError.
func (m *Module) Describe(ctx context.Context) error {
	if m.manifest != nil {
		return nil
	}
	text := m.said
	if text == nil {
		var err error
		if text, err = m.program.Describe(ctx); err != nil {
			return describeError(m.engine, err)
		}
	}
	return m.take(text)
}

// Allow changes how many bytes of memory Describe may take in addition to the sandbox's memory. It replaces the Most of the module's place.
func (m *Module) Allow(most int64) { m.place.Most = most }

// take makes the output of toolsrv_describe the module's manifest.
func (m *Module) take(text []byte) error {
	if err := m.place.allows(manifestNeeds(text)); err != nil {
		m.said = text
		return err
	}
	m.said = nil
	read, err := ParseManifest(text)
	if err != nil {
		return fmt.Errorf("result of toolsrv_describe: %w", err)
	}
	if read.Engine == "" {
		read.Engine = m.engine
	}
	return m.setManifest(read, len(text))
}

// A MemoryError means that a tool's memory limit is below what its module declares, so that no call could begin.
type MemoryError struct {
	Path         string
	Needs, Limit int64 // in bytes
}

// Error says which limit to raise.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs %s of memory to start, but its limit is %s: raise its limit \"memory\"", e.Path, text.Size(e.Needs), text.Size(e.Limit))
}

// errUndescribed means that Describe was not called.
var errUndescribed = errors.New("the module has not been described yet")

// Build makes the module's tools with their limits and grants. Nil limits mean the sandbox's defaults, and a nil granter grants nothing. Another
// Build changes both: a tool with the same limits and grants stays, with its running and waiting calls. If Build fails, the tools stay as they were.
func (m *Module) Build(limitsFor func(path string) limits.Limits, granter Granter) (err error) {
	if m.manifest == nil {
		return errUndescribed
	}
	if m.isBuilt(limitsFor, granter) {
		return nil
	}
	tools := make([]*wasmtools.Tool, len(m.manifest.Tools))
	allowances := make([]allowance, len(tools))
	made := programs{}
	defer func() {
		if err != nil {
			made.close(m.configured)
		}
	}()
	for i, declared := range m.manifest.Tools {
		needs := m.needs[i]
		allowances[i] = allowanceOf(m.paths[i], needs, limitsFor, granter)
		program, err := made.with(m.program, allowances[i].granted.Settings, m.configured)
		if err != nil {
			return err
		}
		if m.tools != nil && m.allowances[i].equal(&allowances[i]) {
			tools[i] = m.tools[i]
			continue
		}
		t := &wasmtools.Tool{
			Namespace:   m.namespace,
			Name:        declared.Name,
			Title:       declared.Title,
			Description: declared.Description,
			Annotations: declared.Annotations,
			Icons:       declared.Icons,
			Version:     m.manifest.Version,
			Parameters:  (*schema.Schema)(m.schemas[i].parameters),
			Examples:    declared.Examples,
			Digest:      m.program.Digest(),
			Source:      m.place.Source,
			Needs:       needs,
		}
		if result := m.schemas[i].result; result != nil {
			t.Result = (*schema.Schema)(result)
		}
		runs := program.Tool(m.paths[i], int32(i), allowances[i].limits, allowances[i].granted.Values...)
		t.Missing = allowances[i].granted.Missing
		t.MaxInput = runs.Limits().Input
		t.Caller = caller{runs}
		if err := t.Check(); err != nil {
			return err
		}
		tools[i] = t
	}
	m.configured.close(made)
	m.tools, m.allowances, m.configured = tools, allowances, made
	return nil
}

// isBuilt reports whether the tools already have these limits and grants, which is true for nearly all tools when a configuration changes.
func (m *Module) isBuilt(limitsFor func(path string) limits.Limits, granter Granter) bool {
	for i := range m.tools {
		l := allowanceOf(m.paths[i], m.needs[i], limitsFor, granter)
		if !l.equal(&m.allowances[i]) {
			return false
		}
	}
	return m.tools != nil
}

// CheckMemory returns a *MemoryError if a tool that Build made can't run within its limits.
func (m *Module) CheckMemory() error {
	needs := m.program.Memory()
	for _, t := range m.tools {
		if limit := t.Caller.(caller).tool.Limits().Memory; needs > limit {
			return &MemoryError{t.Path(), needs, limit}
		}
	}
	return nil
}

// Tools returns the tools that Build made, in the order of the manifest. The slice must not be changed.
func (m *Module) Tools() []*wasmtools.Tool { return m.tools }

// Close frees the program. Running calls of its tools, and calls that an old generation still begins, continue.
func (m *Module) Close() {
	m.configured.close(nil)
	m.program.Close() // documented not to fail
}
