package toolfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// Pack returns a copy of a module with its manifest embedded, and the manifest. said is a manifest as JSON, or nil. If it is nil, the manifest
// comes from the module: from its export toolsrv_describe, which is run, or else from the section that it already has. If said is given, it
// replaces both, but must not change the numbers of the tools that the module describes. If the module describes itself, its engine is added to
// the manifest. A server accepts what Pack returns, in any folder. If a script is to blame, the error is a *ScriptError.
func Pack(ctx context.Context, engine *sandbox.Engine, content, said []byte) ([]byte, *manifest.Manifest, error) {
	packed, m, err := PackModule(ctx, engine, content, said)
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	return packed, m.Manifest(), nil
}

// PackModule does what Pack does, and returns the module with its tools. The caller closes it.
func PackModule(ctx context.Context, engine *sandbox.Engine, content, said []byte) ([]byte, *Module, error) {
	binary, err := wasmbin.Parse(content)
	if err != nil {
		return nil, nil, err
	}
	program, err := programOf(engine, wasmbin.Made{Module: binary}, Place{})
	if err != nil {
		return nil, nil, err
	}
	defer program.Close() // once the packed module has its code and its snapshot
	text, err := manifestOf(ctx, program, binary, said)
	if err != nil {
		return nil, nil, err
	}
	packed, err := binary.SetCustom(manifest.Section, text)
	if err != nil {
		return nil, nil, err
	}
	m, err := Load(engine, packed, Place{})
	if err != nil {
		return nil, nil, err
	}
	if err := m.Build(nil, nil); err != nil {
		m.Close()
		return nil, nil, err
	}
	return packed, m, nil
}

// manifestOf returns the text of a module's manifest, which is valid.
func manifestOf(ctx context.Context, program *sandbox.Program, binary *wasmbin.Module, given []byte) ([]byte, error) {
	interpreter, err := engineOf(binary)
	if err != nil {
		return nil, err
	}
	var told []byte
	source := "result of toolsrv_describe"
	switch {
	case program.Describes():
		if err = program.Compile(ctx); err != nil { // so that compiling does not use up the module's time limit
			return nil, err
		}
		if told, err = program.Describe(ctx); err != nil {
			return nil, describeError(interpreter, err)
		}
	case given == nil:
		source = "custom section " + manifest.Section
		if told, err = embedded(binary); err != nil {
			return nil, err
		}
		if told == nil {
			return nil, errors.New("the module does not say which tools it has (it has no export toolsrv_describe): write its manifest to a file, and name that with --manifest")
		}
	}
	var own, other *manifest.Manifest
	if told != nil {
		told = bytes.TrimSpace(told)
		if own, err = ParseManifest(told); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
	}
	if given == nil {
		if interpreter != "" && own.Engine == "" {
			return withEngine(told, interpreter)
		}
		return told, nil
	}
	given = bytes.TrimSpace(bytes.TrimPrefix(given, []byte("\ufeff"))) // some editors write a byte order mark, which JSON does not allow
	if other, err = ParseManifest(given); err == nil && own != nil {
		err = sameNumbers(own, other)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return given, nil
}

// sameNumbers returns an error if a tool would be called by another tool's number. A tool may be renamed.
func sameNumbers(told, given *manifest.Manifest) error {
	if len(given.Tools) > len(told.Tools) {
		return fmt.Errorf("it has %d tools, but the module describes %d", len(given.Tools), len(told.Tools))
	}
	for i, t := range given.Tools {
		at := slices.IndexFunc(told.Tools, func(o manifest.Tool) bool { return o.Name == t.Name })
		if at >= 0 && at != i {
			return fmt.Errorf("tools[%d] is %q, but the module itself describes that as tools[%d]: keep the module's order, because tools are called by number", i, t.Name, at)
		}
	}
	return nil
}
