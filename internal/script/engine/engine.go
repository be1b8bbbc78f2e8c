// Package engine has the interpreters that scripts run in: it says which of them this binary contains, and how a script gets into one.
//
// An engine is a module of ABI 1 that is built once, with a region in its memory for the script that it runs. Its custom section toolsrv.engine, at
// most 4 KiB of JSON, describes it ([About]). Manifests that toolsrv_describe returns name the engine by that description. If toolsrv_describe fails,
// that is an error in the script, and its author is shown the message.
//
// A tool file is the engine with one more data segment at its end. It is active, at the address in the export toolsrv_bundle, a global whose value is
// one i32.const. It fills the region with the [File]s of a script. Without the segment and custom sections, the file has to equal the engine byte for
// byte, apart from the numbers that count segments. So all tools of an engine share its code. They also share its state after steps 1 and 2 of the
// order of events in docs/abi.md, which run once for all of them, and without the segment. _initialize does what is the same for every script, and
// toolsrv_warm the rest. A tool takes memory only for the pages that it changes in toolsrv_warm. If _initialize has changed more than memory and
// globals, such as a table, each call begins with step 1.
package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// Section is the custom section with an engine's description.
	Section = "toolsrv.engine"
	// Region is the export of an engine with the address of the region for a bundle: an immutable i32.
	Region = "toolsrv_bundle"
)

// About is an engine's description of itself. Its JSON members are the section's.
type About struct {
	// Name is the language: "javascript" or "python".
	Name string `json:"name"`
	// Version names the interpreter with its version, such as "cpython 3.13.5".
	Version string `json:"version"`
	// Revision is a digest of everything that the engine was built from.
	Revision string `json:"revision"`
	// Capacity is how many bytes a bundle may have.
	Capacity int `json:"capacity"`
}

// String returns the interpreter, its version and the engine's revision, as in manifests.
func (a About) String() string { return a.Version + " (" + a.Revision + ")" }

// readAbout reads an engine's description.
func readAbout(text []byte) (a About, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return About{}, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return About{}, errors.New("more than one value")
	}
	return a, a.check()
}

// check returns an error that says what is missing.
func (a About) check() error {
	for _, word := range []struct{ key, value string }{{"name", a.Name}, {"version", a.Version}, {"revision", a.Revision}} {
		if word.value == "" || len(word.value) > 100 || strings.ContainsFunc(word.value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("%q is not a line of 1 to 100 ASCII characters", word.key)
		}
	}
	if a.Capacity <= 0 {
		return errors.New(`"capacity" is not a number of bytes`)
	}
	return nil
}

// An Engine is an interpreter's module. It is safe for concurrent use.
type Engine struct {
	About
	module *wasmbin.Module
	region uint32
}

// Parse reads an engine from a module, which must not change afterwards.
func Parse(module []byte) (*Engine, error) {
	parsed, err := wasmbin.Parse(module)
	if err != nil {
		return nil, err
	}
	e := &Engine{module: parsed}
	about, ok, err := parsed.Custom(Section)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("this is not an engine: it has no custom section %s", Section)
	}
	if e.About, err = readAbout(about); err != nil {
		return nil, fmt.Errorf("custom section %s: %w", Section, err)
	}
	if e.region, ok = parsed.Constant(Region); !ok {
		return nil, fmt.Errorf("this is not an engine: it does not export the address %s", Region)
	}
	memories := parsed.Memories()
	if len(memories) != 1 || uint64(e.region)+uint64(e.Capacity) > memories[0].Min<<16 {
		return nil, fmt.Errorf("the engine's region of %s at %#x is not within its memory", text.Size(int64(e.Capacity)), e.region)
	}
	return e, nil
}

// Module returns the engine's module without a script. It must not be changed.
func (e *Engine) Module() []byte { return e.module.Bytes() }

// With returns the module of a tool with the files, the first of which is the script. It does not copy the engine's module.
func (e *Engine) With(files []File) (wasmbin.Made, error) {
	bundle, err := encode(files, e.Capacity)
	if err != nil {
		return wasmbin.Made{}, err
	}
	return wasmbin.Made{Module: e.module, Bundle: bundle}, nil
}

// Append returns a copy of the engine's module with the files, the first of which is the script.
func (e *Engine) Append(files []File) ([]byte, error) {
	bundle, err := encode(files, e.Capacity)
	if err != nil {
		return nil, err
	}
	return e.module.AppendData(e.region, bundle)
}
