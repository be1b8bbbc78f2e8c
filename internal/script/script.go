// Package script makes tool files from scripts: from a file in Python, JavaScript or TypeScript with everything that it imports, and the interpreter
// for it. It does not run scripts.
package script

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/script/javascript"
	"github.com/toolsrv/toolsrv/internal/script/python"
	"github.com/toolsrv/toolsrv/internal/text"
)

// A Language is what a script is written in.
type Language string

// The languages.
const (
	Python     Language = "python"
	JavaScript Language = "javascript"
	TypeScript Language = "typescript"
)

// LanguageOf returns the language of a file by its ending, or "" if it is not a script.
func LanguageOf(name string) Language {
	switch filepath.Ext(name) {
	case ".py":
		return Python
	case ".js", ".mjs":
		return JavaScript
	case ".ts", ".mts":
		return TypeScript
	}
	return ""
}

// Endings returns the endings of scripts' names, without the dot.
func Endings() []string { return []string{"py", "js", "mjs", "ts", "mts"} }

// IsPart reports whether a script's name says that it is part of a tool, or a test: it begins with "_", pytest or Node.js takes it for a test, or it
// is a file of type declarations or the configuration of a build tool.
func IsPart(name string) bool {
	name = filepath.Base(name)
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	switch {
	case strings.HasPrefix(name, "_"):
		return true
	case LanguageOf(name) == Python:
		return strings.HasPrefix(stem, "test_") || strings.HasSuffix(stem, "_test") || stem == "conftest" || stem == "setup"
	}
	for _, ending := range []string{".test", ".spec", ".d", ".config"} {
		if strings.HasSuffix(stem, ending) {
			return true
		}
	}
	return false
}

// Options say how a script is built. The zero value is for the author's own machine.
type Options struct {
	// Engines are the interpreters to choose from; nil means those that this binary contains.
	Engines *engine.Set
	// Root is the folder to which reading is restricted, for scripts by others; "" means no restriction.
	Root string
	// With are folders with more packages for a script in Python.
	With []string
	// Content is the content of the script's own file, in place of the file on disk, which need not exist; only with a Root. If nil, the file is read.
	Content []byte
}

// maxContent is how many bytes of a script may be given to a Builder: no language accepts more in one file.
const maxContent = 16 << 20

// Build returns the module of the script at path, which describes itself, and the paths of the files that it depends on: those that were read and, as
// far as known, those that were missing. Paths may also be returned with an error. If the script is to blame, the error is an *Error.
func Build(ctx context.Context, path string, o Options) (module []byte, inputs []string, err error) {
	e, files, inputs, err := gather(ctx, path, o)
	if err != nil {
		return nil, inputs, err
	}
	module, err = e.Append(files)
	return module, inputs, blame(path, err)
}

// gather returns the engine and the files for a script, with the paths of those that it depends on.
func gather(ctx context.Context, path string, o Options) (e *engine.Engine, files []engine.File, inputs []string, err error) {
	if e, err = open(o.Engines, path); err != nil {
		return nil, nil, nil, err
	}
	files, inputs, err = collect(ctx, path, o)
	if err != nil && ctx.Err() == nil {
		err = &Error{err}
	}
	return e, files, inputs, err
}

// open returns the engine for a script, from engines or, if that is nil, from those in this binary.
func open(engines *engine.Set, path string) (*engine.Engine, error) {
	if engines == nil {
		engines = engine.Carried()
	}
	switch LanguageOf(path) {
	case Python:
		return engines.Open("python")
	case JavaScript, TypeScript:
		return engines.Open("javascript")
	}
	return nil, fmt.Errorf("%s is not a script: its name must end in .py, .js, .mjs, .ts or .mts", path)
}

// collect returns the files of a script, and the paths of those that it depends on.
func collect(ctx context.Context, path string, o Options) (files []engine.File, inputs []string, err error) {
	if LanguageOf(path) == Python {
		return python.Collect(ctx, path, python.Options{Root: o.Root, With: o.With, Content: o.Content})
	}
	return javascript.Collect(ctx, path, javascript.Options{Root: o.Root, Content: o.Content})
}

// collect returns the stored files of a script, or has a process collect them. If the script's content is given, nothing is stored.
func (b Builder) collect(ctx context.Context, root, path string, content []byte) (files []engine.File, inputs []string, err error) {
	if b.Memory == nil || content != nil {
		return b.Readers.read(ctx, root, path, content)
	}
	if files, inputs, ok := b.Memory.recall(root, path); ok {
		return files, inputs, nil
	}
	began := time.Now()
	files, inputs, err = b.Readers.read(ctx, root, path, nil)
	if err == nil {
		b.Memory.keep(root, path, began, files, inputs)
	}
	return files, inputs, err
}

// blame turns the error of an engine that does not accept the files of a script into an error of the script.
func blame(path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{fmt.Errorf("%s: %w", filepath.Base(path), err)}
}

// An Error says what is wrong with a script. Its text is Err's, which is meant for the script's author: most often the place, the line,
// and what to do.
type Error struct{ Err error }

// Error returns the text of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// A Builder makes modules from scripts by others, for a tools directory. People who may put a script there must not be able to stop the server. A
// parser can be made to take endless time, or all of the stack. So separate processes read scripts.
type Builder struct {
	// Engines are the interpreters to choose from; nil means those that this binary contains.
	Engines *engine.Set
	// Readers read scripts in separate processes. If nil, Build reads them in this process, which is for scripts by people who could stop it anyway.
	Readers *Readers
	// Memory stores what Readers have collected. If nil, they read each script anew.
	Memory *Memory
}

// IsScript reports whether a file is a script.
func (Builder) IsScript(name string) bool { return LanguageOf(name) != "" }

// IsPart is the function IsPart.
func (Builder) IsPart(name string) bool { return IsPart(name) }

// Build returns the module of a script that reads nothing outside the folder root, unless root is empty, and the paths of the files that it depends
// on. content is [Options.Content]. Its errors are those of the function Build.
func (b Builder) Build(ctx context.Context, root, path string, content []byte) (module wasmbin.Made, inputs []string, err error) {
	if len(content) > maxContent {
		return wasmbin.Made{}, nil, &Error{fmt.Errorf("%s has %s; a script may have %s", filepath.Base(path), text.Size(int64(len(content))), text.Size(maxContent))}
	}
	var e *engine.Engine
	var files []engine.File
	if b.Readers == nil || root == "" {
		e, files, inputs, err = gather(ctx, path, Options{Engines: b.Engines, Root: root, Content: content})
	} else if e, err = open(b.Engines, path); err == nil {
		files, inputs, err = b.collect(ctx, root, path, content)
	}
	if err != nil {
		return wasmbin.Made{}, inputs, err
	}
	module, err = e.With(files)
	return module, inputs, blame(path, err)
}
