// Package workbench loads a tool file or a script as a server would, so that its author can call it, try its examples and measure it.
package workbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// Options are the settings for opening a file. Config and Logger are required.
type Options struct {
	// Config is the configuration of the server that is imitated, with its limits, grants, tools directory and cache.
	Config *config.Config
	// Limits replace the limits of Config, if they are set.
	Limits limits.Limits
	Logger *slog.Logger
	// Stderr gets the compiler's output, if a project's folder is opened. Nil discards it.
	Stderr io.Writer
	// With are folders with additional packages for a Python script.
	With []string
	// Compiling, if not nil, is called before the module is compiled, which may take seconds. The function that it returns is called afterwards.
	Compiling func(size int) (done func())
}

// A File is a tool file, or the module of a script, whose tools can be called. Close frees it.
type File struct {
	// Name is the given name of the file, and Size its size in bytes.
	Name string
	Size int
	// Load and Compile are how long it took to read, check and rewrite the module, and to compile it.
	Load, Compile time.Duration

	service *core.Service // its table has the file's tools, so that they can call each other
	module  *toolfile.Module
}

// Open opens a file, or builds and opens the tool file of the project in a folder. An error names it.
func Open(ctx context.Context, name string, o Options) (_ *File, err error) {
	s, err := core.OpenBare(ctx, o.Config, 1, o.Logger)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, service: s}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	begun := time.Now()
	content, err := build(ctx, name, o)
	if err != nil {
		return nil, err
	}
	f.Size = len(content)
	f.module, err = toolfile.Load(s.Engine, content, placeOf(o.Config, name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.Load = time.Since(begun)
	err = f.prepare(ctx, o)
	if _, ok := errors.AsType[*toolfile.ScriptError](err); err != nil && !ok {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// build returns the module of a tool file, of a script, or of the project in a folder.
func build(ctx context.Context, name string, o Options) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if p, err := project.Open(name); err == nil && p.Script == "" {
			return p.Compile(ctx, cmp.Or[io.Writer](o.Stderr, io.Discard))
		}
	}
	module, _, err := Read(ctx, name, o.With)
	return module, err
}

// A Made says what a module was made from.
type Made struct {
	// Script is the path of the script. Inputs are the paths of all files on which it depends, even if they are missing.
	Script string
	Inputs []string
}

// Read returns the module of a tool file, or the module made from a script with the packages in folders. If the path is a folder, it must be the
// project of a script. made is nil unless it was a script. A script's module describes itself.
func Read(ctx context.Context, name string, with []string) (module []byte, made *Made, err error) {
	path := name
	if script.LanguageOf(name) == "" {
		p, err := project.Open(name)
		if err != nil || p.Script == "" {
			module, err = toolfile.ReadFile(name)
			return module, nil, err
		}
		path = p.Script
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { // a missing file is no error in the script
		return nil, &Made{path, []string{path}}, fmt.Errorf("there is no script %s", path)
	}
	module, inputs, err := script.Build(ctx, path, script.Options{With: with})
	return module, &Made{path, inputs}, err
}

// prepare makes the tools ready to be called.
func (f *File) prepare(ctx context.Context, o Options) error {
	done := func() {}
	if o.Compiling != nil {
		done = o.Compiling(f.Size)
	}
	begun := time.Now()
	err := f.module.Compile(ctx)
	f.Compile = time.Since(begun)
	done()
	if err != nil {
		return err
	}
	if err := f.module.Describe(ctx); err != nil {
		return err
	}
	in := *o.Config
	if !f.keeps(builtin.With(in.Capabilities)) {
		in.State.Directory, in.State.URL = "", "" // a running server may be using it
	}
	inForce, err := f.service.Configure(&in)
	if err != nil {
		return err
	}
	if err := f.module.Build(func(path string) limits.Limits { return limittable.Over(o.Limits, configured.Limits(o.Config, path)) }, inForce.Granted); err != nil {
		return err
	}
	f.review(o)
	return f.service.Table.Configure(f.Tools(), nil, wasmtools.Configuration{Value: inForce})
}

// keeps reports whether one of the tools needs a capability that keeps data.
func (f *File) keeps(kinds []capability.Kind) bool {
	m := f.module.Manifest()
	for _, k := range kinds {
		needs := func(n wasmtools.Needs) bool { _, ok := n[k.Name]; return ok }
		if k.Keeps && (needs(m.Needs) || slices.ContainsFunc(m.Tools, func(t manifest.Tool) bool { return needs(t.Needs) })) {
			return true
		}
	}
	return false
}

// review warns of grants that don't work, such as a folder that can't be read. The tool itself could only say that a file is missing.
func (f *File) review(o Options) {
	for _, finding := range broker.Review(o.Config, f.Tools()) {
		if finding.Entry != "" {
			o.Logger.Warn("a grant: "+finding.Message, "key", finding.Key)
		}
	}
}

// Close frees the file. It must be called once.
func (f *File) Close() {
	if f.module != nil {
		f.module.Close()
	}
	_ = f.service.Close() // nothing can be done about an error
}

// Tools returns the tools, in the order of the manifest. The slice must not be changed.
func (f *File) Tools() []*wasmtools.Tool { return f.module.Tools() }

// Pick returns the tool with a name or a path. "" means the only tool.
func (f *File) Pick(name string) (*wasmtools.Tool, error) {
	tools := f.Tools()
	if name == "" && len(tools) == 1 {
		return tools[0], nil
	}
	var names []string
	for _, t := range tools {
		if name == t.Name || "/"+strings.TrimPrefix(name, "/") == t.Path() {
			return t, nil
		}
		names = append(names, t.Name)
	}
	const most = 20
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(tools)-most))
	}
	list := strings.Join(names, ", ")
	if name == "" {
		return nil, fmt.Errorf("%s has several tools: name one of them (%s)", f.Name, list)
	}
	return nil, fmt.Errorf("%s has no tool %q: it has %s", f.Name, name, list)
}

// Call calls a tool as a server does, on behalf of the process itself. The error is a *wasmtools.Error.
func (f *File) Call(ctx context.Context, tool *wasmtools.Tool, call *wasmtools.Call) ([]byte, error) {
	call.Principal = wasmtools.Self()
	return f.service.Invoker.Call(ctx, invoker.RouteTo(tool), call)
}

// TryExamples calls the tools with the arguments of their examples, in order, and calls tell with the outcome of each.
func (f *File) TryExamples(ctx context.Context, tell func(toolfile.Trial)) {
	f.module.TryExamples(ctx, tell)
}

// placeOf returns the place of a file: in the first directory of tools that contains it, or in none.
func placeOf(c *config.Config, file string) toolfile.Place {
	for _, s := range configured.Sources(c) {
		if folder, ok := folderIn(s.Directory, file); ok && s.Directory != "" {
			return toolfile.Place{Folder: folder, Prefix: s.Prefix, Source: file}
		}
	}
	return toolfile.Place{Source: file}
}

// folderIn returns the folder of a file in the tools directory, with slashes. ok is false if the file is not in that directory.
func folderIn(directory, file string) (folder string, ok bool) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", false
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return "", false
	}
	folder, err = filepath.Rel(directory, filepath.Dir(abs))
	if err != nil || !filepath.IsLocal(folder) {
		return "", false
	}
	if folder == "." {
		return "", true
	}
	return filepath.ToSlash(folder), true
}
