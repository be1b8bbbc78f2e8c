package toolfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Pack returns a copy of a module with its manifest embedded, and the manifest. Where manifest, JSON, is nil, the module
// has to tell it: by its export toolsrv_describe, which is run, or else by the section that it has already. A manifest that
// is given takes the place of both. What Pack returns is what a server takes, whatever its folder.
func Pack(ctx context.Context, engine *sandbox.Engine, content, manifest []byte) ([]byte, *wasmtools.Manifest, error) {
	text, err := manifestOf(ctx, engine, content, manifest)
	if err != nil {
		return nil, nil, err
	}
	packed, err := wasmbin.SetCustom(content, wasmtools.ManifestSection, text)
	if err != nil {
		return nil, nil, err
	}
	m, err := Load(engine, packed, Place{})
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	if err := m.Build(nil); err != nil {
		return nil, nil, err
	}
	return packed, m.Manifest(), nil
}

// manifestOf returns the text of a module's manifest, which has been parsed.
func manifestOf(ctx context.Context, engine *sandbox.Engine, content, manifest []byte) ([]byte, error) {
	program, err := engine.Load(content)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	source := "manifest"
	switch {
	case manifest != nil:
		manifest = bytes.TrimPrefix(manifest, []byte("\ufeff")) // some editors write it; JSON has none
	case program.Describes():
		source = "result of toolsrv_describe"
		if manifest, err = program.Describe(ctx); err != nil {
			return nil, fmt.Errorf("run toolsrv_describe: %w", err)
		}
	default:
		source = "custom section " + wasmtools.ManifestSection
		if manifest, err = embedded(content); err != nil {
			return nil, err
		}
		if manifest == nil {
			return nil, errors.New("the module does not tell its tools (it has no export toolsrv_describe): write its manifest to a file, and give that with --manifest")
		}
	}
	manifest = bytes.TrimSpace(manifest)
	if _, err := wasmtools.ParseManifest(manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return manifest, nil
}
